//! The report of a running service.

use http::Method;

use crate::{Client, Error, Refusal};

impl Client {
    /// The report of the process that answers, for administrators. Heat has none.
    pub async fn report(&self) -> Result<String, Error> {
        let response = self.exchange(Method::GET, "/report", &vec![], None).await?;
        if !response.status.is_success() {
            return Err(Error::Refused(Refusal::read(response.status.as_u16(), &response.body)));
        }
        String::from_utf8(response.body.to_vec())
            .map_err(|_| Error::Answer("The report of the service is not UTF-8".to_owned()))
    }
}
