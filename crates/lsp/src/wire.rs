//! Messages of the protocol: headers, an empty line, JSON.

use std::io::{self, BufRead, Write};

use serde_json::Value;

/// A longer message is a mistake.
const MAX_LENGTH: usize = 64 << 20;

/// The next message; `None` at the end.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<Value>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let length = length.ok_or_else(|| wrong("a message without Content-Length"))?;
    if length > MAX_LENGTH {
        return Err(wrong("a message that is too long"));
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    serde_json::from_slice(&body).map(Some).map_err(io::Error::from)
}

/// Sends a message.
pub(super) fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let body = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut wire = Vec::new();
        let message = serde_json::json!({"method": "ü"});
        write(&mut wire, &message).unwrap();
        write(&mut wire, &Value::Null).unwrap();
        let mut input = wire.as_slice();
        assert_eq!(read(&mut input).unwrap(), Some(message));
        assert_eq!(read(&mut input).unwrap(), Some(Value::Null));
        assert_eq!(read(&mut input).unwrap(), None);
        assert!(read(&mut &b"Content-Length: x\r\n\r\n{}"[..]).is_err());
    }
}
