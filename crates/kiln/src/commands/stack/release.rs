//! `kiln stack release`: gives the objects of a stack to another owner.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kiln_console::output::{json_text, print, visible};
use kiln_console::progress::{Mode, Target};
use kiln_server::whole_file;
use kiln_value::{Value, text};

use super::{HowArgs, ended, of_stack};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::commands::export::{Object, objects};
use crate::commands::terraform::names;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Give the objects of a stack to another tool: delete the stack, keep the objects, and print what the next owner needs
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
The data of the stack is written to a file first. 'kiln stack adopt' and Heat make the stack again from it. \
It contains the values of hidden parameters. The service must allow users to abandon stacks.

Examples:
  kiln stack release db --dry-run
  kiln stack release db --to terraform > imports.tf
  kiln stack release cache --to openstack --data cache.json")]
pub(crate) struct ReleaseArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// What to print
    #[arg(long, value_enum, value_name = "TOOL", default_value_t)]
    to: Tool,
    /// File for the data of the stack [default: STACK.released.json]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Print what would be printed, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// The tool of the next owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Tool {
    /// The data for 'openstack stack adopt' and 'kiln stack adopt'
    #[default]
    Heat,
    /// Import blocks for terraform-provider-openstack
    Terraform,
    /// Commands that show the objects
    Openstack,
}

impl ReleaseArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        if self.dry_run {
            let data = client.export_stack(&self.stack).await.map_err(of_stack(&self.stack))?;
            return Ok(print(&self.text(&data))?);
        }
        if self.confirm.is_needed() {
            let question = format!(
                "The objects of stack {} stay in the cloud, and Kiln forgets them. Release it [y/N]? ",
                self.stack
            );
            self.confirm.confirm(&question).await?;
        }
        let file =
            self.data.clone().unwrap_or_else(|| format!("{}.released.json", self.stack.replace('/', "_")).into());
        // A file that cannot be written is an error before the stack is gone.
        whole_file::check(&file).map_err(|error| Failure::unwritable(&file, &error))?;
        let target = Target::existing(client, &self.stack, false).await.map_err(of_stack(&self.stack))?;
        let data = client.abandon_stack(&self.stack).await.map_err(of_stack(&self.stack))?;
        // It is the only record of the objects: if it cannot be stored, it is printed.
        if let Err(error) = whole_file::replace_secret(&file, format!("{}\n", json_text(&data)).as_bytes()) {
            let record = text::json(&data);
            if print(&format!("{record}\n")).is_err() {
                eprintln!("{record}");
            }
            return Err(Failure::unwritable(&file, &error).hint("the stack is released; its data is printed as JSON"));
        }
        print(&self.text(&data))?;
        let how = HowArgs { poll: None, progress: Mode::None };
        let end = how.follow(connection, target, false).await?;
        ended(&self.stack, &end, "DELETE")?;
        eprintln!("{}: released; the data of the stack is in {}", self.stack, file.display());
        Ok(())
    }

    fn text(&self, data: &Value) -> String {
        match self.to {
            Tool::Heat => json_text(data) + "\n",
            Tool::Terraform => terraform(&objects(data)),
            Tool::Openstack => openstack(&objects(data)),
        }
    }
}

fn terraform(objects: &[Object]) -> String {
    let mut out = String::new();
    for Object { path, resource_type, id } in objects {
        let (shown, quoted) = (line(path), text::json(&Value::from(id.replace("${", "$${").replace("%{", "%%{"))));
        let Some(named) = names(resource_type) else {
            // Writing to a string cannot fail.
            _ = writeln!(out, "# {shown} ({}): {}; Terraform has no such resource\n", line(resource_type), line(id));
            continue;
        };
        let address = format!("{}.{}", named.terraform, identifier(path));
        let mark = if let Some(owner) = named.owner {
            _ = writeln!(out, "# {shown}: the ID is {owner}/{}", line(id));
            "# "
        } else {
            _ = writeln!(out, "# {shown}");
            ""
        };
        _ = writeln!(out, "{mark}import {{\n{mark}  to = {address}\n{mark}  id = {quoted}\n{mark}}}\n");
    }
    out
}

fn openstack(objects: &[Object]) -> String {
    let mut out = String::new();
    for Object { path, resource_type, id } in objects {
        // In single quotes, a shell reads everything but these quotes as it is.
        let id = format!("'{}'", line(id).replace('\'', r"'\''"));
        _ = match names(resource_type) {
            Some(named) => writeln!(out, "openstack {} show {id}  # {}", named.openstack, line(path)),
            None => writeln!(out, "# {} ({}): {id}", line(path), line(resource_type)),
        };
    }
    out
}

/// A name in Terraform's language.
fn identifier(path: &str) -> String {
    let name: String = path.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("_{name}") }
}

/// A text in one line of a comment or a command.
fn line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    fn exported() -> Vec<Object> {
        let data = value!({"resources": {
            "net": {"type": "OS::Neutron::Net", "resource_id": "n1"},
            "group": {"type": "OS::Heat::ResourceGroup", "resource_id": "s1", "resources": {
                "0": {"type": "OS::Octavia::PoolMember", "resource_id": "m1"},
            }},
            "alarm": {"type": "OS::Aodh::Alarm", "resource_id": "a'${x}\n"},
            "value": {"type": "OS::Heat::Value", "resource_id": "v1"},
            "none": {"type": "OS::Neutron::Port", "resource_id": null},
        }});
        objects(&data)
    }

    #[test]
    fn terraform_imports_what_it_knows() {
        let text = terraform(&exported());
        let net = "# net\nimport {\n  to = openstack_networking_network_v2.net\n  id = \"n1\"\n}\n";
        assert!(text.starts_with(net), "{text}");
        assert!(
            text.contains("# group/0: the ID is POOL_ID/m1\n# import {\n#   to = openstack_lb_member_v2.group_0\n"),
            "{text}"
        );
        assert!(text.contains("# alarm (OS::Aodh::Alarm): a'${x}\\n; Terraform has no such resource\n"), "{text}");
        assert!(!text.contains("value") && !text.contains("none"), "{text}");
    }

    #[test]
    fn commands_are_safe_to_paste() {
        let text = openstack(&exported());
        assert!(text.starts_with("openstack network show 'n1'  # net\n"), "{text}");
        assert!(text.lines().all(|line| line.starts_with("openstack ") || line.starts_with("# ")), "{text}");
        assert!(text.contains(r"# alarm (OS::Aodh::Alarm): 'a'\''${x}"), "{text}");
        assert_eq!((identifier("group/0/a b"), identifier("0")), ("group_0_a_b".to_owned(), "_0".to_owned()));
    }
}
