//! `kiln template graph`.

use clap::{Args, ValueEnum};
use kiln_authoring::graph::Graph;
use kiln_client::{Bundle, parameters};
use kiln_console::output::print;

use super::blueprint;
use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::connect::{Connection, Need};
use crate::failure::Outcome;
use crate::topology::{self, Lowering};

/// Format of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// Graphviz.
    #[default]
    Dot,
    /// Mermaid, for Markdown.
    Mermaid,
    /// SVG image.
    Svg,
    /// Nodes and edges as JSON.
    Json,
}

/// Draw the resources and their dependencies
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln template graph web.yaml | dot -Tpng > web.png
  kiln template graph web.yaml -f svg > web.svg
  kiln template graph web.yaml -f mermaid -e production.yaml --parameter size=3
  kiln template graph tosca.yaml             the resources that a TOSCA template becomes

An arrow points from a resource to the resources that depend on it.")]
pub(crate) struct GraphArgs {
    /// Template: path or URL
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// Environment: path or URL; may be repeated, later ones take precedence
    #[arg(short, long, value_name = "ENVIRONMENT")]
    environment: Vec<String>,
    /// Parameter value, which conditions may depend on; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    parameter: Vec<String>,
    /// Ask the service for the types of blueprints and TOSCA that its operator has added
    #[arg(long)]
    service_types: bool,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "dot")]
    format: Drawing,
}

impl GraphArgs {
    pub(super) async fn run(self, global: &Global) -> Outcome {
        let given = parameters(&self.parameter)?;
        let source = Connection::source(global)?;
        let connection = if self.service_types { Some(Connection::open(global, Need::Nothing).await?) } else { None };
        let service = connection.as_ref().map(|connection| &connection.client);
        let by = Lowering { source: &source, settings: &global.local, service, software: None };
        let bundle = match topology::read(&by, &self.template, &self.environment, &given).await? {
            Some(made) => made.bundle,
            None => Bundle::read(&source, Some(&self.template), &self.environment).await?,
        };
        if let Some(connection) = connection {
            connection.close().await?;
        }
        let graph = Graph::of(&blueprint(&bundle, &given, &global.local.catalog().await?)?);
        Ok(print(&match self.format {
            Drawing::Dot => graph.dot(),
            Drawing::Mermaid => graph.mermaid(),
            Drawing::Svg => graph.svg(),
            Drawing::Json => format!("{:#}\n", json(&graph)),
        })?)
    }
}

fn json(graph: &Graph) -> serde_json::Value {
    let name = |index: usize| graph.nodes.get(index).map(|node| node.name.as_str());
    let nodes = graph.nodes.iter().map(|node| serde_json::json!({"name": node.name, "type": node.resource_type}));
    let edges =
        graph.edges.iter().map(|(earlier, later)| serde_json::json!({"from": name(*earlier), "to": name(*later)}));
    serde_json::json!({"nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>()})
}
