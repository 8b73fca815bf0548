//! Runs a command on a pseudo terminal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::run::Ran;

/// Runs the command in its arguments; once it has printed the first one, what is to be typed is read from here.
const SCRIPT: &str = "
import os, pty, select, sys
asked, command = sys.argv[1].encode(), sys.argv[2:]
process, terminal = pty.fork()
if process == 0:
    os.execv(command[0], command)
printed, told = b'', False
while True:
    if not told and not select.select([terminal], [], [], 60)[0]:
        sys.exit(f'{asked} was not asked: {printed}')
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    printed += part
    if not told and asked in printed:
        told = True
        print('asked', flush=True)
        os.write(terminal, sys.stdin.readline().encode())
print(printed.decode().replace('\\r\\n', '\\n'), end='', flush=True)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
";

/// Runs `kiln` on a terminal; when it prints `asked`, does something else first and then types the answer.
pub(crate) fn answered(kiln: &Command, asked: &str, meanwhile: impl FnOnce(), answer: &str) -> Ran {
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT, asked]).arg(kiln.get_program()).args(kiln.get_args());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("TERM", "dumb");
    command.envs(kiln.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(kiln.get_current_dir().unwrap()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = command.spawn().unwrap();
    let mut printed = BufReader::new(terminal.stdout.take().unwrap());
    let mut out = String::new();
    printed.read_line(&mut out).unwrap();
    if out == "asked\n" {
        out.clear();
        meanwhile();
        terminal.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    }
    printed.read_to_string(&mut out).unwrap();
    Ran { code: terminal.wait().unwrap().code().unwrap_or(-1), out, err: String::new() }
}
