import NetOptCore
import NetOptEngine
import NetOptLocking

/// Makes changes of the files that the TLS settings name take effect in a running client. Safe from any
/// thread.
final class TLSFileWatch: Sendable {
  private let tls: ClientConfiguration.TLS
  private let transport: CurlTransport
  private let cache: (cache: ResponseCache, configuration: ClientConfiguration.Cache)?
  /// Receives the errors of files that changed and cannot be used.
  private let warn: @Sendable (NetOptError) -> Void

  private struct State {
    var watch: FileWatch?
    /// The task that applies the last change; `nil` before the first one.
    var task: Task<Void, Never>?
    var isStopped = false
  }
  private let state = Locked(State())

  init(_ configuration: ClientConfiguration, _ transport: CurlTransport, _ cache: ResponseCache?) {
    tls = configuration.tls
    self.transport = transport
    self.cache = cache.flatMap { cache in configuration.cache.map { (cache, $0) } }
    let handler = configuration.warningHandler
    warn = { handler?($0) }
  }

  /// Starts to watch the files, if there are any.
  ///
  /// - Parameter known: the identities that the files had before they were read.
  func start(on loop: EventLoop, known: [FileIdentity?]) {
    let files = LoadedTLS.files(of: tls)
    guard !files.isEmpty else { return }
    let watch = FileWatch(
      loop, files, known: known, onChange: { [weak self] in self?.filesDidChange() },
      onFailure: { [warn] in warn($0) })
    state.withLock { state in
      guard !state.isStopped else { return }
      state.watch = watch
      watch.start()
    }
  }

  /// Stops the watch. Must be called before the loop stops.
  func stop() {
    let (watch, task) = state.withLock { state in
      state.isStopped = true
      return (state.watch.take(), state.task)
    }
    watch?.stop()
    task?.cancel()
  }

  /// Applies the changes one after the other.
  private func filesDidChange() {
    state.withLock { state in
      guard !state.isStopped else { return }
      state.task = Task { [task = state.task] in
        await task?.value
        await self.apply()
      }
    }
  }

  /// Reads all files and gives their content to the transport and the cache. If a file cannot be used, the
  /// settings stay as they are.
  private func apply() async {
    let loaded: LoadedTLS
    let digest: String?
    do throws(NetOptError) {
      loaded = try LoadedTLS(tls)
      try loaded.checkAuthorities()
      digest = try cache?.configuration.settingsDigest(loaded)
    } catch {
      warn(
        NetOptError(
          error.code, phase: error.phase,
          "a certificate file has changed and cannot be used, so the client keeps what it had: \(error.message)",
          underlying: error.underlying))
      return
    }
    // While connections with the old and the new settings may be opened, no other client shares what is
    // stored.
    cache?.cache.setSettings("changing \(UInt64.random(in: 0 ... .max))")
    await transport.setTLS(loaded.usual, loaded.hosts)
    if let digest { cache?.cache.setSettings(digest) }
  }
}
