//! `kiln template lower`.

use clap::{Args, ValueEnum};
use kiln_client::parameters;
use kiln_console::output::{json_text, print, yaml_text};
use kiln_value::{Map, Value, value};

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::connect::{Connection, Need};
use crate::failure::{Failure, Outcome};
use crate::topology::{self, Lowering, Software};

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The HOT template.
    #[default]
    Template,
    /// The nested templates by name.
    Nested,
    /// The parameters that depend on the cloud, and what they ask for.
    Questions,
    /// The part of the original that each resource, parameter and output is from.
    Sources,
    /// The original with its references, types and defaults resolved.
    Reading,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TextFormat {
    /// YAML.
    #[default]
    Yaml,
    /// JSON.
    Json,
}

/// Convert a blueprint, CAMP plan, TOSCA template or package to HOT
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln template lower app.yaml > hot.yaml
  kiln template lower tosca.yaml -f json --parameter cpus=2
  kiln template lower app.yaml --show questions
  kiln template lower app.yaml --software cloud-init
  kiln template lower app.yaml --topology-types-dir node-types   with types of your own

Blueprints, CAMP plans, TOSCA service templates and packages of them (ZIP, TAR, gzipped TAR) can be \
used in the place of templates, for example with 'kiln stack create -t app.csar'. They are converted \
to HOT first; this command prints the result. Values that depend on the cloud, such as flavors and \
images, become parameters. Software is installed by software deployments, which need an agent in the \
image, or with --software cloud-init by user data.")]
pub(crate) struct LowerArgs {
    /// Blueprint, plan, service template or package: path or URL
    #[arg(value_name = "FILE")]
    file: String,
    /// Value of an input; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    parameter: Vec<String>,
    /// How software gets to servers
    #[arg(long, value_enum, value_name = "HOW")]
    software: Option<Software>,
    /// Ask the service for the types of blueprints and TOSCA that its operator has added
    #[arg(long)]
    service_types: bool,
    /// What to print
    #[arg(long, value_enum, value_name = "PART", default_value = "template")]
    show: Part,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "yaml")]
    format: TextFormat,
}

impl LowerArgs {
    pub(super) async fn run(self, global: &Global) -> Outcome {
        let given = parameters(&self.parameter)?;
        let source = Connection::source(global)?;
        let connection = if self.service_types { Some(Connection::open(global, Need::Nothing).await?) } else { None };
        let service = connection.as_ref().map(|connection| &connection.client);
        let by = Lowering { source: &source, settings: &global.local, service, software: self.software };
        let Some(made) = topology::read(&by, &self.file, &[], &given).await? else {
            return Err(Failure::new(format!(
                "{} cannot be read, or is not a blueprint, CAMP plan, TOSCA template or package of one",
                self.file
            )));
        };
        if let Some(connection) = connection {
            connection.close().await?;
        }
        let lowered = &made.lowered;
        let shown: Value = match self.show {
            Part::Template => lowered.template.clone(),
            Part::Nested => lowered.nested.iter().map(|(name, template)| (name.clone(), template.clone())).collect(),
            Part::Questions => lowered.questions.iter().map(|q| (q.parameter.clone(), q.wanted.text())).collect(),
            Part::Sources => sources(lowered),
            Part::Reading => made.reading,
        };
        Ok(print(&match self.format {
            TextFormat::Json => format!("{}\n", json_text(&shown)),
            TextFormat::Yaml if self.show == Part::Template => {
                let text = yaml_text(&shown);
                // In the usual order of sections.
                kiln_authoring::format::format(&text).unwrap_or(text)
            }
            TextFormat::Yaml => yaml_text(&shown),
        })?)
    }
}

fn sources(lowered: &kiln_topology::lower::Lowered) -> Value {
    let entries = lowered.sources.iter().map(|(part, source)| {
        let mut entry = value!({"at": (source.at.to_string())});
        if let (Some(file), Some(map)) = (&source.file, entry.as_map_mut()) {
            map.insert("file".to_owned(), file.into());
        }
        (part.clone(), entry)
    });
    Value::Map(entries.collect::<Map>())
}
