//! `kiln dashboard`: the dashboard for one user, on the own machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use kiln_console::output::print;
use kiln_dashboard::{Dashboard, Owner, Parts};
use kiln_server::language::Templates;
use kiln_server::shutdown;
use kiln_stack::Chance;
use kiln_value::Secret;
use tokio::net::TcpListener;

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::commands::open_page::open;
use crate::connect::{Connection, PageParts};
use crate::failure::{Failure, Outcome};

/// Show your stacks in a browser
#[derive(Args, Debug)]
#[command(add = Effect::Changes("nothing by itself; the page asks before a change"))]
#[command(after_help = "\
Serves the dashboard on the loopback interface, for you alone, and starts a browser. The page acts with your token at the \
service of the cloud, or with --local at the engine in this process. The address can be used once: others on the machine \
cannot sign in with it. Press Ctrl-C to stop.

The service can be Kiln or a Heat. For a Heat the page shows what it has, and names what it lacks.

Where the operator has set '[kiln] dashboard', the service has the same page at /dashboard.

Examples:
  kiln dashboard
  kiln dashboard web                  shows this stack
  kiln dashboard --no-browser         only prints the address
  kiln dashboard --local              the stacks of --local")]
pub(crate) struct DashboardArgs {
    /// Name or ID of a stack to show [default: the list of stacks]
    #[arg(value_name = "STACK")]
    stack: Option<String>,
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Only print the address
    #[arg(long)]
    no_browser: bool,
}

impl DashboardArgs {
    /// Runs the command.
    pub(crate) async fn run(self, global: &Global, connection: &Connection) -> Outcome {
        let shown = match &self.stack {
            Some(stack) => connection.page_of(stack).await?,
            None => String::new(),
        };
        let PageParts { api, access, connector, regions, lists } = connection.page().await?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("cannot listen on port {}", self.port))?;
        let address = listener.local_addr().context("cannot determine the port")?;
        let owner = Owner::new(address, &access)
            .ok_or_else(|| Failure::new("your token has no project"))?
            .in_region(regions.first().map(|region| region.name.clone()));
        let url = format!("{}{shown}", owner.address().expose());
        let secret = Secret::new(Chance::from_os().uuid().to_string());
        let language = Arc::new(Templates {
            resource_types: Arc::new(global.local.catalog().await?),
            topology_types: global.local.topology_types()?,
        });
        let parts =
            Parts { api, connector, secret, proxy_headers: false, owner: Some(owner), language, regions, lists };
        let dashboard = Dashboard::new(parts);
        let (_end, stop) = shutdown::on_signal();
        print(&format!("{url}\n"))?;
        if !self.no_browser && !open(&url) {
            eprintln!("No browser was found: open the address yourself.");
        }
        eprintln!("Press Ctrl-C to stop.");
        dashboard.serve(listener, shutdown::stopped(stop)).await.context("the dashboard failed")?;
        Ok(())
    }
}
