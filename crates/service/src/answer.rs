//! Answers the questions of a lowered topology (docs/topology.md): which flavor, image or network of the cloud a parameter
//! without a value stands for.
//!
//! An answer is a parameter of the stack like any other. An update keeps it while it fits, so that a new flavor in the cloud
//! does not resize servers.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use kiln_identity::Caller;
use kiln_plan::Sources;
use kiln_resource::{Cloud, CloudRequest, Failure, Method};
use kiln_store::Stack;
use kiln_template::Files;
use kiln_topology::answer;
use kiln_topology::question::{Questions, Wanted};
use kiln_value::{Diagnostic, Map, Path, Value, text};

use crate::blueprint::invalid;
use crate::{Error, Service};

/// Objects of a page.
const PAGE: usize = 1000;
/// Pages that are read of a list.
const MAX_PAGES: usize = 10;
/// Candidates that an error names.
const MAX_NAMED: usize = 10;
/// Properties of an image that is a snapshot of a server.
const SNAPSHOT: (&str, &str) = ("image_type", "snapshot");

/// A stack before its update.
pub(crate) struct Before<'s> {
    /// The stack.
    pub(crate) stack: &'s Stack,
    /// Its parameters: an answer that fits is kept.
    pub(crate) parameters: &'s Map,
    /// The parameters of the request, if the others are those of the stack.
    pub(crate) given: Option<&'s Map>,
}

impl Service {
    /// The sources with answers for the parameters without a value. `before` is the stack before an update.
    ///
    /// # Errors
    /// [`Error::Invalid`] for each parameter that the cloud does not answer, with the candidates and why they do not fit.
    pub(crate) async fn answered(
        &self,
        caller: &Caller,
        mut sources: Sources,
        questions: &Questions,
        before: Option<&Before<'_>>,
    ) -> Result<Sources, Error> {
        // Among the parameters of the stack that the request keeps, answers are not values of the user.
        let mut noted = BTreeSet::new();
        if let Some(given) = before.and_then(|before| before.given) {
            noted = sources.files.get(answer::FILE).map(answer::of_file).unwrap_or_default();
            noted.retain(|name| !given.contains_key(name));
        }
        let kept = &sources.environment;
        let is_given = |name: &String| {
            kept.parameter_defaults.contains_key(name) || kept.parameters.contains_key(name) && !noted.contains(name)
        };
        let open: Vec<(&String, &Wanted)> = questions.iter().filter(|(name, _)| !is_given(name)).collect();
        if open.is_empty() {
            return Ok(with_note(sources, &noted));
        }
        let mut answers =
            Answers { cloud: self.identity.cloud(caller).await, lists: Lists::default(), taken: Vec::new() };
        let (mut environment, mut wrong, mut made) = ((*sources.environment).clone(), Vec::new(), BTreeSet::new());
        for (name, wanted) in open {
            let answer = match wanted {
                Wanted::Members { group, least, most } => {
                    let members = Box::pin(self.members(before.map(|before| before.stack), group)).await;
                    let Some(members) = members else { continue };
                    Ok(members.min(most.unwrap_or(members)).max(least.unwrap_or(0)).to_string())
                }
                Wanted::Component { stack, resource, attribute } => {
                    Box::pin(self.existing_component(caller, stack, resource, attribute)).await
                }
                Wanted::Jurisdiction(countries) => self.country(countries),
                wanted => answers.of(wanted, before.and_then(|before| before.parameters.get(name)?.as_str())).await,
            };
            match answer {
                Ok(answer) => {
                    tracing::debug!(parameter = name, answer, wanted = wanted.text(), "answered");
                    made.insert(name.clone());
                    environment.parameters.insert(name.clone(), answer.into());
                }
                Err(why) => wrong.push(
                    Diagnostic::invalid(format!("No value was found. {} {why}", wanted.text()))
                        .at(Path::root().key("parameters").key(name))
                        .hint(format!("Specify the parameter {name}.")),
                ),
            }
        }
        if !wrong.is_empty() {
            return Err(invalid(wrong));
        }
        sources.environment = Arc::new(environment);
        noted.append(&mut made);
        Ok(with_note(sources, &noted))
    }
}

/// The sources with the names of the parameters that are answers among the files.
fn with_note(mut sources: Sources, noted: &BTreeSet<String>) -> Sources {
    let entry = (!noted.is_empty()).then(|| answer::to_file(noted));
    if sources.files.get(answer::FILE) != entry.as_deref() {
        let mut files = Files::clone(&sources.files);
        match entry {
            Some(entry) => files.0.insert(answer::FILE.to_owned(), entry),
            None => files.0.remove(answer::FILE),
        };
        sources.files = Arc::new(files);
    }
    sources
}

impl Service {
    /// The number of members of a group of a stack, or of a nested stack of it; `None` if there is none yet.
    async fn members(&self, stack: Option<&Stack>, group: &[String]) -> Option<i64> {
        let (name, nested) = group.split_last()?;
        let mut view = self.view(stack?.clone()).await.ok()?;
        for name in nested {
            let child = view.resource(name)?.child?;
            view = self.view(self.backends.store.stack(child).await.ok()??).await.ok()?;
        }
        let mut attributes = view.attributes(name, &["current_size".to_owned()]).await;
        attributes.shift_remove("current_size")?.as_i64()
    }
}

/// A list of the cloud, read when it is needed first.
type List = Option<Result<Vec<Value>, Failure>>;

/// The lists of one request.
#[derive(Default)]
struct Lists {
    flavors: List,
    images: List,
    networks: List,
    subnets: List,
    zones: List,
}

struct Answers {
    cloud: Option<Arc<dyn Cloud>>,
    lists: Lists,
    /// Ranges of addresses that were answered before in this request.
    taken: Vec<Range>,
}

impl Answers {
    /// The answer, or why there is none. `current` is that of the stack.
    async fn of(&mut self, wanted: &Wanted, current: Option<&str>) -> Result<String, String> {
        let Some(cloud) = self.cloud.clone() else { return Err("No cloud can be asked.".to_owned()) };
        let cloud = &*cloud;
        match wanted {
            Wanted::Flavor { cpus, memory, disk } => {
                let flavors =
                    read(&mut self.lists.flavors, cloud, "compute", "/flavors/detail", "flavors", &[]).await?;
                let wanted =
                    [("vcpus", "CPUs", *cpus), ("ram", "MiB of memory", *memory), ("disk", "GiB of disk", *disk)];
                let size = |flavor: &Value| ["ram", "vcpus", "disk"].map(|key| flavor.get(key).and_then(Value::as_i64));
                let mut choice = Choice::of(flavors, "name", current, |flavor| lacks(flavor, &wanted));
                choice.fitting.sort_by_key(|flavor| (size(flavor), flavor.str_at("name")));
                choice.first()
            }
            Wanted::Image(properties) => {
                let filter = [("status", "active"), ("sort", "created_at:desc")];
                let images = read(&mut self.lists.images, cloud, "image", "/v2/images", "images", &filter).await?;
                let choice = Choice::of(images, "id", current, |image| differs(image, properties));
                // Without any wish, none is better than another one; otherwise the newest is the first.
                if properties.is_empty() { choice.only() } else { choice.first() }
            }
            Wanted::Network => {
                let networks =
                    read(&mut self.lists.networks, cloud, "network", "/v2.0/networks", "networks", &[]).await?;
                let project = cloud.project_id().await.map_err(|failure| failure.to_string())?;
                Choice::of(networks, "id", current, internal).prefer(|network| is_of(network, &project)).only()
            }
            Wanted::Subnet => {
                let subnets = read(&mut self.lists.subnets, cloud, "network", "/v2.0/subnets", "subnets", &[]).await?;
                let project = cloud.project_id().await.map_err(|failure| failure.to_string())?;
                Choice::of(subnets, "id", current, |_| None).prefer(|subnet| is_of(subnet, &project)).only()
            }
            Wanted::Addresses => {
                if let Some(current) = current {
                    return Ok(current.to_owned());
                }
                let subnets = read(&mut self.lists.subnets, cloud, "network", "/v2.0/subnets", "subnets", &[]).await?;
                let used = subnets
                    .iter()
                    .filter_map(|subnet| Range::parse(subnet.str_at("cidr")?))
                    .chain(self.taken.iter().copied());
                let free = Range::free(&used.collect::<Vec<_>>()).ok_or("All of 192.168.0.0/16 is in use.")?;
                self.taken.push(free);
                Ok(free.to_string())
            }
            // The service answers these itself.
            Wanted::Component { .. } | Wanted::Jurisdiction(_) | Wanted::Members { .. } => {
                Err("The cloud does not know it.".to_owned())
            }
            Wanted::Zone(host) => {
                let zones = read(&mut self.lists.zones, cloud, "dns", "/v2/zones", "zones", &[]).await?;
                let mut choice = Choice::of(zones, "name", current, |zone| outside(zone, host));
                choice.fitting.sort_by_key(|zone| std::cmp::Reverse(zone.str_at("name").map(str::len)));
                choice.first()
            }
        }
    }
}

/// Reads a list once, in pages.
async fn read<'l>(
    list: &'l mut List,
    cloud: &dyn Cloud,
    service: &str,
    path: &str,
    key: &str,
    filter: &[(&str, &str)],
) -> Result<&'l [Value], String> {
    if list.is_none() {
        *list = Some(pages(cloud, service, path, key, filter).await);
    }
    match list {
        Some(Ok(objects)) => Ok(objects),
        Some(Err(failure)) => Err(format!("The cloud did not answer: {failure}")),
        None => Ok(&[]),
    }
}

async fn pages(
    cloud: &dyn Cloud,
    service: &str,
    path: &str,
    key: &str,
    filter: &[(&str, &str)],
) -> Result<Vec<Value>, Failure> {
    let mut objects: Vec<Value> = Vec::new();
    for _ in 0..MAX_PAGES {
        let mut request = CloudRequest::new(service, Method::Get, path).query("limit", PAGE.to_string());
        for (name, value) in filter {
            request = request.query(*name, *value);
        }
        if let Some(last) = objects.last().and_then(|object| object.str_at("id")) {
            request = request.query("marker", last);
        }
        let answer = cloud.call(request).await?.body;
        let page = answer.get(key).and_then(Value::as_list).unwrap_or_default();
        objects.extend_from_slice(page);
        // Services may have smaller pages than asked for; all of them link to the next one.
        let is_last = page.is_empty()
            || ![format!("{key}_links"), "next".into(), "links".into()].iter().any(|link| has_next(answer.get(link)));
        if is_last {
            break;
        }
    }
    Ok(objects)
}

/// Whether a link to the next page is among the links of a page: a text, a map by relation or a list of maps.
fn has_next(links: Option<&Value>) -> bool {
    match links {
        Some(Value::Str(_)) => true,
        Some(Value::Map(links)) => links.contains_key("next"),
        Some(Value::List(links)) => links.iter().any(|link| link.str_at("rel") == Some("next")),
        _ => false,
    }
}

/// The objects that fit, and why the others do not.
struct Choice<'l> {
    fitting: Vec<&'l Value>,
    /// With the key of the answer, as `current`.
    key: &'static str,
    current: Option<&'l str>,
    refused: Vec<String>,
}

impl<'l> Choice<'l> {
    /// `key` is what names an object in the answer; `refusal` says why one does not fit.
    fn of(
        objects: &'l [Value],
        key: &'static str,
        current: Option<&'l str>,
        refusal: impl Fn(&Value) -> Option<String>,
    ) -> Self {
        let mut choice = Self { fitting: Vec::new(), key, current, refused: Vec::new() };
        for object in objects {
            match refusal(object) {
                None => choice.fitting.push(object),
                Some(why) => choice.refused.push(format!("{} {why}", named(object))),
            }
        }
        choice
    }

    /// The same with only those that are better, if there are any.
    fn prefer(mut self, is_better: impl Fn(&Value) -> bool) -> Self {
        // The answer of the stack stays, even if others are better now.
        if self.kept().is_none() && self.fitting.iter().any(|object| is_better(object)) {
            self.fitting.retain(|object| is_better(object));
        }
        self
    }

    /// The answer of the stack, if it still fits. Users may have given a name in the place of an ID.
    fn kept(&self) -> Option<String> {
        let current = self.current?;
        let is_current =
            |object: &&Value| object.str_at("id") == Some(current) || object.str_at("name") == Some(current);
        self.fitting.iter().any(is_current).then(|| current.to_owned())
    }

    /// The answer of the stack, or the first one.
    fn first(&self) -> Result<String, String> {
        self.kept().or_else(|| self.fitting.first()?.str_at(self.key).map(str::to_owned)).ok_or_else(|| self.why_none())
    }

    /// The answer of the stack, or the only one.
    fn only(&self) -> Result<String, String> {
        match &self.fitting[..] {
            several @ [_, _, ..] if self.kept().is_none() => {
                Err(format!("More than one fits: {}.", listed(several.iter().map(|object| named(object)), ", ")))
            }
            _ => self.first(),
        }
    }

    fn why_none(&self) -> String {
        match &self.refused[..] {
            [] => "The cloud has none.".to_owned(),
            refused => format!("None fits: {}.", listed(refused.iter().cloned(), "; ")),
        }
    }
}

/// The name of an object, or its ID.
fn named(object: &Value) -> String {
    let name = object.str_at("name").filter(|name| !name.is_empty());
    name.or_else(|| object.str_at("id")).unwrap_or_default().to_owned()
}

/// Some texts, and the number of the others.
fn listed(texts: impl ExactSizeIterator<Item = String>, separator: &str) -> String {
    let others = texts.len().saturating_sub(MAX_NAMED);
    let mut listed = texts.take(MAX_NAMED).collect::<Vec<_>>().join(separator);
    if others > 0 {
        _ = write!(listed, "{separator}and {others} others");
    }
    listed
}

/// What a flavor has too little of.
fn lacks(flavor: &Value, wanted: &[(&str, &str, Option<i64>)]) -> Option<String> {
    if flavor.get("OS-FLV-DISABLED:disabled").is_some_and(Value::is_truthy) {
        return Some("is disabled".to_owned());
    }
    wanted.iter().find_map(|(key, unit, least)| {
        let has = flavor.get(key).and_then(Value::as_i64).unwrap_or(0);
        (has < (*least)?).then(|| format!("has {has} {unit}"))
    })
}

/// Which property of an image is another one.
fn differs(image: &Value, wanted: &Map) -> Option<String> {
    if image.str_at(SNAPSHOT.0) == Some(SNAPSHOT.1) {
        return Some("is a snapshot of a server".to_owned());
    }
    wanted.iter().find_map(|(name, wanted)| match image.get(name) {
        None => Some(format!("has no {name}")),
        Some(has) if text::str(has).eq_ignore_ascii_case(&text::str(wanted)) => None,
        Some(has) => Some(format!("has {name} {}", text::str(has))),
    })
}

/// Servers are connected to networks inside of the cloud.
fn internal(network: &Value) -> Option<String> {
    network.get("router:external").is_some_and(Value::is_truthy).then(|| "is external".to_owned())
}

fn is_of(object: &Value, project: &str) -> bool {
    ["project_id", "tenant_id"].iter().any(|key| object.str_at(key) == Some(project))
}

/// A zone that does not contain a name.
fn outside(zone: &Value, host: &str) -> Option<String> {
    let (zone, host) = (zone.str_at("name").unwrap_or_default(), format!("{}.", host.trim_end_matches('.')));
    let is_inside = host == zone || host.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.'));
    (!is_inside).then(|| "does not contain it".to_owned())
}

/// A range of IPv4 addresses.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u32,
    prefix: u32,
}

impl Range {
    fn parse(cidr: &str) -> Option<Self> {
        let (address, prefix) = cidr.split_once('/')?;
        let prefix: u32 = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
        Some(Self { first: u32::from(address.parse::<Ipv4Addr>().ok()?), prefix })
    }

    fn overlaps(self, other: Self) -> bool {
        let bits = 32 - self.prefix.min(other.prefix);
        u64::from(self.first) >> bits == u64::from(other.first) >> bits
    }

    /// The first free one of 192.168.0.0/16 for 256 addresses.
    fn free(used: &[Self]) -> Option<Self> {
        let candidates =
            (0..=255).map(|third| Self { first: u32::from(Ipv4Addr::new(192, 168, third, 0)), prefix: 24 });
        candidates.into_iter().find(|range| !used.iter().any(|other| range.overlaps(*other)))
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use futures::FutureExt as _;
    use kiln_resource::CloudResponse;
    use kiln_value::{Class, value};

    use super::*;

    #[test]
    fn the_first_free_range_overlaps_no_other() {
        let free = |used: &[&str]| {
            let used: Vec<Range> = used.iter().filter_map(|cidr| Range::parse(cidr)).collect();
            Range::free(&used).map(|range| range.to_string())
        };
        assert_eq!(free(&[]).as_deref(), Some("192.168.0.0/24"));
        assert_eq!(free(&["192.168.0.128/25", "10.0.0.0/8", "fd00::/64"]).as_deref(), Some("192.168.1.0/24"));
        assert_eq!(free(&["192.168.0.0/17"]).as_deref(), Some("192.168.128.0/24"));
        assert_eq!(free(&["0.0.0.0/0"]), None);
    }

    #[test]
    fn a_zone_contains_names_below_it() {
        let zone = value!({"name": "example.com."});
        assert_eq!(outside(&zone, "www.example.com"), None);
        assert_eq!(outside(&zone, "example.com."), None);
        assert!(outside(&zone, "www.badexample.com").is_some());
    }

    #[test]
    fn the_answer_of_the_stack_is_kept_while_it_fits() {
        let flavors = ["small", "large"].map(|name| value!({"id": (format!("{name}-id")), "name": name}));
        let chosen = |current: Option<&str>, except: &str| {
            let refusal = |flavor: &Value| (flavor.str_at("name") == Some(except)).then(|| "is refused".to_owned());
            Choice::of(&flavors, "name", current, refusal).first()
        };
        assert_eq!(chosen(None, "").as_deref(), Ok("small"));
        assert_eq!(chosen(Some("large"), "").as_deref(), Ok("large"));
        assert_eq!(chosen(Some("large"), "large").as_deref(), Ok("small"));
        assert_eq!(chosen(Some("gone"), "").as_deref(), Ok("small"));
        let refusal = |_: &Value| Some("is refused".to_owned());
        let none = Choice::of(&flavors, "name", None, refusal).only();
        assert_eq!(none.unwrap_err(), "None fits: small is refused; large is refused.");
        let several = Choice::of(&flavors, "name", None, |_| None).only();
        assert_eq!(several.unwrap_err(), "More than one fits: small, large.");
    }

    /// A cloud with these pages; if there is no last one, with the first one again and again.
    struct Pages {
        pages: Vec<Value>,
        asked: Mutex<Vec<Option<String>>>,
    }

    #[async_trait]
    impl Cloud for Pages {
        async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
            let marker = request.query.into_iter().find(|(name, _)| name == "marker").map(|(_, marker)| marker);
            let mut asked = self.asked.lock().expect("whole");
            let page = self.pages.get(asked.len()).or(self.pages.first()).cloned();
            asked.push(marker);
            let page = page.ok_or_else(|| Failure::other(Class::ServiceUnavailable, "the service is away"))?;
            Ok(CloudResponse { status: 200, body: page, ..CloudResponse::default() })
        }

        async fn find(&self, _: &str, name: &str) -> Result<String, Failure> {
            Ok(name.to_owned())
        }

        async fn has_service(&self, _: &str) -> Result<bool, Failure> {
            Ok(true)
        }

        async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
            Ok(true)
        }

        async fn project_id(&self) -> Result<String, Failure> {
            Ok("p".to_owned())
        }
    }

    fn answers(pages: &Arc<Pages>) -> Answers {
        Answers { cloud: Some(Arc::clone(pages) as Arc<dyn Cloud>), lists: Lists::default(), taken: Vec::new() }
    }

    fn page(ram: i64, next: &Value) -> Value {
        value!({"flavors": [{"id": (format!("{ram}")), "name": (format!("m{ram}")), "ram": ram}], "flavors_links": next})
    }

    const GIGABYTE: Wanted = Wanted::Flavor { cpus: None, memory: Some(1024), disk: None };

    #[test]
    fn lists_are_read_once_page_by_page() {
        let next = value!([{"rel": "next", "href": "…"}]);
        let pages = vec![page(512, &next), page(2048, &next), page(1024, &value!([]))];
        let pages = Arc::new(Pages { pages, asked: Mutex::default() });
        let mut answers = answers(&pages);
        for _ in 0..2 {
            assert_eq!(answers.of(&GIGABYTE, None).now_or_never().expect("an answer at once").as_deref(), Ok("m1024"));
        }
        let markers = [None, Some("512".to_owned()), Some("2048".to_owned())];
        assert_eq!(*pages.asked.lock().expect("whole"), markers);
    }

    #[test]
    fn a_service_that_never_ends_its_list_or_is_away_gets_few_calls() {
        let next = value!([{"rel": "next", "href": "…"}]);
        let endless = Arc::new(Pages { pages: vec![page(512, &next)], asked: Mutex::default() });
        let why = answers(&endless).of(&GIGABYTE, None).now_or_never().expect("an answer at once").unwrap_err();
        assert!(why.starts_with("None fits: m512 has 512 MiB of memory; "), "{why}");
        assert_eq!(endless.asked.lock().expect("whole").len(), MAX_PAGES);
        let away = Arc::new(Pages { pages: Vec::new(), asked: Mutex::default() });
        let mut answers = answers(&away);
        for _ in 0..2 {
            let why = answers.of(&GIGABYTE, None).now_or_never().expect("an answer at once").unwrap_err();
            assert!(why.starts_with("The cloud did not answer: ") && why.contains("the service is away"), "{why}");
        }
        assert_eq!(away.asked.lock().expect("whole").len(), 1);
    }

    #[test]
    fn errors_name_some_of_many() {
        let many = listed((0..13).map(|number| number.to_string()).collect::<Vec<_>>().into_iter(), ", ");
        assert_eq!(many, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 3 others");
    }
}
