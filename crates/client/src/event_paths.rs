//! Paths in lists of events.

use std::collections::HashMap;

use crate::Event;

/// Paths of resources through nested stacks, such as `group.0.server`, derived from events as python-heatclient does.
#[derive(Debug, Default)]
pub struct EventPaths {
    /// Maps the ID or name of a nested stack to the stack and name of its parent resource.
    parents: HashMap<String, (String, String)>,
}

impl EventPaths {
    /// The path of the resource of an event; events are passed in their order.
    pub fn of(&mut self, event: &Event) -> String {
        let (stack, name, physical) = (event.stack_id(), event.resource_name(), event.physical_id());
        if stack.is_empty() {
            return name.to_owned();
        }
        let own = event.is_of_stack();
        if own {
            self.parents.insert(stack.to_owned(), (stack.to_owned(), name.to_owned()));
        } else if !physical.is_empty() && event.status() == "CREATE_IN_PROGRESS" {
            self.parents.insert(physical.to_owned(), (stack.to_owned(), name.to_owned()));
        }
        let mut path = if own || name.is_empty() { vec![] } else { vec![name.to_owned()] };
        self.lead(&mut path, stack);
        path.reverse();
        path.join(".")
    }

    fn lead(&self, path: &mut Vec<String>, stack: &str) {
        // Stops at cycles in the answer of the service.
        const DEEPEST: usize = 64;
        let Some((stack, name)) = self.parents.get(stack) else { return };
        match self.parents.get(name) {
            // An event of the nested stack itself has the name of the stack, which leads to the parent resource.
            Some((parent, resource)) if path.len() < DEEPEST => {
                path.push(resource.clone());
                if parent != stack {
                    self.lead(path, parent);
                }
            }
            _ if !name.is_empty() => path.push(name.clone()),
            _ => {}
        }
    }
}
