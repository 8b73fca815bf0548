//! `kiln software deployment create`.

use clap::{Args, ValueEnum};
use kiln_console::output::{Format, OutputArgs};
use kiln_drivers::swift::temp_url;
use kiln_resource::{Cloud, CloudRequest, Method};
use kiln_stack::{Chance, Clock as _, SystemClock};
use kiln_value::url::quote;
use kiln_value::{Map, Value, value};

use super::missing;
use crate::commands::effect::Effect;
use crate::commands::stack::entries;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

const SWIFT: &str = "object-store";
const KEY: &str = "x-account-meta-temp-url-key";

/// Create a software deployment
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
Examples:
  kiln software deployment create --server SERVER --input-value size=3 install
  kiln software deployment create --server SERVER --signal-transport NO_SIGNAL install")]
pub(crate) struct DeployArgs {
    /// Name of the deployment; a server gets its deployments in the order of their names
    #[arg(value_name = "DEPLOYMENT-NAME")]
    name: String,
    /// Value of an input; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    input_value: Vec<(String, String)>,
    /// Action of the deployment
    #[arg(long, value_name = "ACTION", default_value = "UPDATE")]
    action: String,
    /// ID of the config to deploy
    #[arg(long, value_name = "CONFIG")]
    config: Option<String>,
    /// How the server reports the result
    #[arg(long, value_name = "TRANSPORT", value_enum, default_value = "TEMP_URL_SIGNAL")]
    signal_transport: Transport,
    /// Container of Swift for the result [default: a new one]
    #[arg(long, value_name = "CONTAINER")]
    container: Option<String>,
    /// Minutes in which the result is accepted
    #[arg(long, value_name = "MINUTES", default_value_t = 60)]
    timeout: u32,
    /// ID of the server
    #[arg(long, value_name = "SERVER")]
    server: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// How a server reports the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// It writes an object of Swift
    #[value(name = "TEMP_URL_SIGNAL")]
    TempUrl,
    /// It does not
    #[value(name = "NO_SIGNAL")]
    None,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl DeployArgs {
    /// Creates the config with the inputs, and the deployment of it.
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let source = match &self.config {
            Some(id) => client.software_config(id).await.map_err(missing("Software configuration", id))?,
            None => value!({}),
        };
        let url = match self.signal_transport {
            Transport::TempUrl => Some(self.place(connection).await?),
            Transport::None => None,
        };
        let config = client.create_software_config(&self.derived(&source, url)).await?;
        let deployment = value!({
            "config_id": (config.get("id").cloned()),
            "server_id": (self.server.as_str()),
            "action": (self.action.as_str()),
            "status": "IN_PROGRESS",
        });
        let mut made = entries(client.create_software_deployment(&deployment).await?);
        made.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(self.output.one(made, Format::Table)?)
    }

    /// The config with the values of its inputs, and what the agent has to know.
    fn derived(&self, source: &Value, url: Option<String>) -> Value {
        let mut values: Map =
            self.input_value.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        let declared = source.get("inputs").and_then(Value::as_list).unwrap_or_default();
        let mut inputs: Vec<Value> = Vec::new();
        for input in declared.iter().filter_map(Value::as_map) {
            let name = input.get("name").and_then(Value::as_str).unwrap_or_default();
            let value = values.shift_remove(name).or_else(|| input.get("default").cloned()).unwrap_or_default();
            let mut input = input.clone();
            input.insert("value".to_owned(), value);
            inputs.push(input.into());
        }
        inputs.extend(values.into_iter().map(|(name, value)| value!({"name": name, "type": "String", "value": value})));
        let mut own = |name: &str, value: Value, description: &str| {
            inputs.push(value!({"name": name, "type": "String", "value": value, "description": description}));
        };
        let transport = self.signal_transport.to_possible_value();
        let transport = transport.as_ref().map(clap::builder::PossibleValue::get_name).unwrap_or_default();
        own("deploy_server_id", self.server.as_str().into(), "The server that is configured");
        own("deploy_action", self.action.as_str().into(), "The action that the deployment is a part of");
        own("deploy_signal_transport", transport.into(), "How to send the outputs");
        if let Some(url) = url {
            own("deploy_signal_id", url.into(), "Where to send the outputs");
            own("deploy_signal_verb", "PUT".into(), "The HTTP method to send the outputs");
        }
        let given =
            |key: &str, other: Value| source.get(key).filter(|value| value.is_truthy()).cloned().unwrap_or(other);
        value!({
            "name": (self.name.as_str()),
            "group": (given("group", "Heat::Ungrouped".into())),
            "config": (given("config", "".into())),
            "options": (given("options", value!({}))),
            "outputs": (given("outputs", value!([]))),
            "inputs": inputs,
        })
    }

    /// Creates the object for the result; returns the URL for writing it.
    async fn place(&self, connection: &Connection) -> Outcome<String> {
        let cloud = connection.cloud().await?;
        let chance = Chance::from_os();
        let send = async |method: Method, path: String, headers: &[(&str, &str)]| {
            let mut request = CloudRequest::new(SWIFT, method, path);
            request.headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            cloud.call(request).await.map_err(|failure| Failure::new(format!("Swift: {}", failure.message)))
        };
        let container = match &self.container {
            Some(container) => container.clone(),
            None => format!("{}-{}", self.name, chance.uuid()),
        };
        let object = chance.uuid().to_string();
        send(Method::Put, format!("/{}", quote(&container, "")), &[]).await?;
        let key = async || {
            let account = send(Method::Head, String::new(), &[]).await?;
            Outcome::Ok(account.headers.get(KEY).and_then(Value::as_str).map(str::to_owned))
        };
        let mut found = key().await?;
        if found.is_none() {
            send(Method::Post, String::new(), &[(KEY, &chance.uuid().simple().to_string())]).await?;
            found = key().await?;
        }
        let key = found.ok_or_else(|| Failure::new("Swift: the account has no key for temporary URLs"))?;
        let base = cloud.endpoint(SWIFT).await.map_err(|failure| Failure::new(failure.message))?;
        let base = base.ok_or_else(|| Failure::new("the catalog has no object-store service"))?;
        let end = SystemClock.now().as_second().saturating_add(i64::from(self.timeout).saturating_mul(60));
        let path = format!("/{}/{object}", quote(&container, ""));
        let empty = CloudRequest::new(SWIFT, Method::Put, path).body(Value::from(""));
        let empty = CloudRequest { headers: vec![("content-type".to_owned(), "text/plain".to_owned())], ..empty };
        cloud.call(empty).await.map_err(|failure| Failure::new(format!("Swift: {}", failure.message)))?;
        Ok(temp_url::signed(base.trim_end_matches('/'), "PUT", (&container, &object), &key, end))
    }
}
