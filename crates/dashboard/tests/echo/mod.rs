//! A language server that answers with what it is told.

use std::time::Duration;

use kiln_dashboard::{Language, LanguageSession};
use serde_json::{Value, json};

pub(crate) struct Echo;

impl Language for Echo {
    fn session(&self) -> Box<dyn LanguageSession> {
        Box::new(Told { messages: 0, bytes: 0 })
    }
}

struct Told {
    messages: u64,
    bytes: usize,
}

impl LanguageSession for Told {
    fn receive(&mut self, message: &Value) -> Vec<Value> {
        self.messages += 1;
        self.bytes = usize::try_from(message["bytes"].as_u64().unwrap_or_default()).unwrap();
        std::thread::sleep(Duration::from_secs(message["seconds"].as_u64().unwrap_or_default()));
        vec![json!({"told": message})]
    }

    fn settle(&mut self) -> Vec<Value> {
        vec![json!({"settled": self.messages})]
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
