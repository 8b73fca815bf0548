//! `POST /volumes/{id}/action`.

use serde_json::Value;

use super::volumes::{administrators, find, set_status};
use super::{Call, limits, types};
use crate::nova::whole_number;
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row};

const KNOWN: [&str; 11] = [
    "os-extend",
    "os-reset_status",
    "os-set_bootable",
    "os-update_readonly_flag",
    "os-retype",
    "os-force_delete",
    "os-reserve",
    "os-unreserve",
    "os-begin_detaching",
    "os-roll_detaching",
    "os-set_image_metadata",
];

pub(super) fn route(world: &mut CloudState, call: Call<'_>, id: &str) -> Outcome {
    let Value::Object(body) = call.request.json("Malformed request body")? else {
        return Err(Refusal::bad("Malformed request body"));
    };
    let Some((action, given)) = body.iter().next() else {
        return Err(Refusal::bad(
            "There is no such action: None. Verify the request body and Content-Type header and try again.",
        ));
    };
    if !KNOWN.contains(&action.as_str()) {
        let message = format!(
            "There is no such action: {action}. Verify the request body and Content-Type header and try again."
        );
        return Err(Refusal::bad(message));
    }
    let row = find(world, call, id)?.clone();
    let empty = Row::new();
    let arguments = given.as_object().unwrap_or(&empty);
    match action.as_str() {
        "os-extend" => return extend(world, call, &row, arguments),
        "os-reset_status" => {
            administrators(call, "reset_status")?;
            set_status(world, id, arguments.text("status"));
        }
        "os-set_bootable" => {
            let bootable = if arguments.flag("bootable") { "true" } else { "false" };
            world.cinder.volumes.edit(id, |row| row.put("bootable", bootable));
            return Ok(Reply::empty(200));
        }
        "os-update_readonly_flag" => {
            let flag = if arguments.flag("readonly") { "True" } else { "False" };
            world.cinder.volumes.edit(id, |row| row.put("_readonly", flag));
        }
        "os-retype" => {
            let kind = types::resolve(world, arguments.text("new_type"))?;
            world.cinder.volumes.edit(id, |row| row.put("volume_type", kind));
        }
        "os-force_delete" => {
            administrators(call, "force_delete")?;
            super::begin_delete(world, id);
        }
        "os-reserve" => set_status(world, id, "attaching"),
        "os-unreserve" => set_status(world, id, "available"),
        "os-begin_detaching" => set_status(world, id, "detaching"),
        "os-roll_detaching" => set_status(world, id, "in-use"),
        _ => {}
    }
    Ok(Reply::empty(202))
}

fn extend(world: &mut CloudState, call: Call<'_>, row: &Row, arguments: &Row) -> Outcome {
    let id = row.text("id").to_owned();
    let size = row.int("size");
    let wanted = whole_number(arguments, "new_size", 1)?;
    let wanted = wanted.ok_or_else(|| Refusal::bad("'new_size' is a required property"))?;
    if !matches!(row.text("status"), "available" | "in-use") {
        return Err(Refusal::bad(format!(
            "Invalid volume: Volume {id} status must be '('available',)' to extend, currently {}.",
            row.text("status")
        )));
    }
    if wanted <= size {
        return Err(Refusal::bad(format!(
            "Invalid input received: New size for extend must be greater than current size. (current: {size}, extended: \
             {wanted})."
        )));
    }
    limits::check(world, &call.caller.project, 0, wanted - size)?;
    let before = row.text("status").to_owned();
    set_status(world, &id, "extending");
    let fault = world.build_fault;
    world.after(world.options.build_time / 2 + fault.slower, move |world| {
        if fault.fails {
            set_status(world, &id, "error_extending");
            return;
        }
        world.cinder.volumes.edit(&id, |row| row.put("size", wanted));
        set_status(world, &id, &before);
    });
    Ok(Reply::empty(202))
}
