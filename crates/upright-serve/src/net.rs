//! The port: connections, signals, and an orderly end.

use std::net::{SocketAddr, TcpListener as Bound};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use upright::Canonicalizer;

use crate::app::App;
use crate::options::Options;
use crate::routes;

/// Largest head of a request, in bytes; somewhat more if it arrives at once.
const HEAD: usize = 64 << 10;

/// How often metrics are folded.
const FOLD: Duration = Duration::from_secs(5);

/// How long to wait after a connection could not be taken, for lack of file handles.
const PAUSE: Duration = Duration::from_millis(50);

/// What a connection beyond the limit is told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
                      content-length: 0\r\n\r\n";

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {why}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        why: std::io::Error,
    },
    /// The system refuses something else.
    #[error("the server cannot start: {0}")]
    Io(#[from] std::io::Error),
    /// The metrics cannot be set up.
    #[error("the metrics cannot be set up: {0}")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
}

/// A server that has its port.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    bound: Bound,
}

impl Server {
    /// Opens the port and starts what runs the model.
    pub fn bind(canonicalizer: Canonicalizer, options: Options) -> Result<Self, Error> {
        let address = options.address;
        let bound = Bound::bind(address).map_err(|why| Error::Bind { address, why })?;
        bound.set_nonblocking(true)?;
        Ok(Server { app: App::start(canonicalizer, options)?, bound })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.bound.local_addr()
    }

    /// Serves until SIGTERM or SIGINT, then finishes what is under way; a second signal ends
    /// it at once.
    pub fn run(self) -> Result<(), Error> {
        let threads = self.app.options.threads.max(2);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .max_blocking_threads(threads + 2)
            .thread_name("upright-serve")
            .enable_all()
            .build()?;
        runtime.block_on(serve(self.app, self.bound))?;
        // What still runs after the time for draining is left behind.
        runtime.shutdown_background();
        Ok(())
    }
}

async fn serve(app: Arc<App>, bound: Bound) -> Result<(), Error> {
    let listener = TcpListener::from_std(bound)?;
    let mut signals = Signals::new()?;
    let router = routes::all(&app);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(app.options.connections));
    let mut fold = tokio::time::interval(FOLD);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connect(&app, &router, &graceful, &places, stream),
                Err(e) => {
                    tracing::warn!(error = %e, "a connection could not be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            _ = fold.tick() => app.metrics.fold(),
            signal = signals.next() => {
                tracing::info!(signal, "draining");
                break;
            }
        }
    }
    drop(listener);
    app.drain();
    tokio::select! {
        () = graceful.shutdown() => tracing::info!("drained"),
        () = tokio::time::sleep(app.options.drain) => {
            tracing::warn!("requests were still under way after the time for draining");
        }
        signal = signals.next() => tracing::warn!(signal, "ended at once"),
    }
    Ok(())
}

fn connect(
    app: &Arc<App>,
    router: &Router,
    graceful: &GracefulShutdown,
    places: &Arc<Semaphore>,
    mut stream: TcpStream,
) {
    let Ok(place) = places.clone().try_acquire_owned() else {
        tokio::spawn(async move {
            let _ = tokio::time::timeout(PAUSE, stream.write_all(FULL)).await;
        });
        return;
    };
    // Answers are written whole; waiting to send more of them at once only delays them.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(app.options.read_timeout);
    builder.max_buf_size(HEAD);
    let service = TowerToHyperService::new(router.clone());
    let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
    let connections = app.metrics.connections.clone();
    connections.increment(1.0);
    tokio::spawn(async move {
        if let Err(e) = connection.await {
            tracing::debug!(error = %e, "a connection ended");
        }
        connections.decrement(1.0);
        drop(place);
    });
}

/// What tells the server to stop.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = signal(SignalKind::terminate())?;
        Ok(Signals { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// What tells the server to stop.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Signals)
    }

    async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
