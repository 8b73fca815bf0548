//! A stream with a write timeout: if a client does not read for too long, the connection is closed. It also tells when the
//! client has sent something.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

/// A stream with a write timeout.
pub(super) struct Limited<S> {
    stream: S,
    limit: Duration,
    /// When the current write fails.
    until: Option<Pin<Box<Sleep>>>,
    /// Told when the client has sent something.
    begun: Arc<Notify>,
}

impl<S> Limited<S> {
    pub(super) fn new(stream: S, limit: Duration, begun: Arc<Notify>) -> Self {
        Self { stream, limit, until: None, begun }
    }

    /// The result of a write, or an error after the timeout.
    fn timed<T>(&mut self, cx: &mut Context<'_>, answer: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if answer.is_ready() {
            self.until = None;
            return answer;
        }
        let deadline = Instant::now() + self.limit;
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        ready!(until.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read the response")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.begun.notify_one();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.timed(cx, answer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.timed(cx, answer)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(cx, answer)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.timed(cx, answer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_sleeps_ends_the_connection() {
        let (ours, mut theirs) = tokio::io::duplex(4);
        let mut limited = Limited::new(ours, Duration::from_mins(1), Arc::default());
        limited.write_all(b"full").await.unwrap();
        let begun = Instant::now();
        assert_eq!(limited.write_all(b"more").await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 60);
        let mut read = [0; 4];
        theirs.read_exact(&mut read).await.unwrap();
        limited.write_all(b"more").await.unwrap();
    }
}
