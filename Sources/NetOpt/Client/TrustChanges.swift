import NetOptCore
import NetOptEngine
import NetOptLocking
import NetOptRouting

/// Applies changes of trust settings to a running client: changes of the files that the TLS settings name,
/// and of the pins of the IP list. Safe from any thread.
final class TrustChanges: Sendable {
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
    /// Whether the transport is getting new settings, so that a connection may have the old or the new ones.
    var isApplying = false
    /// The content of the files in use.
    var loaded: LoadedTLS
    /// The pins of the list in use.
    var listPins: [String: [PublicKeyPin]]
  }
  private let state: Locked<State>

  /// - Parameters:
  ///   - loaded: the content of the files that `transport` has.
  ///   - list: the list whose pins `transport` has.
  init(
    _ configuration: ClientConfiguration, _ loaded: LoadedTLS, _ list: EndpointList?,
    _ transport: CurlTransport, _ cache: ResponseCache?
  ) {
    state = Locked(State(loaded: loaded, listPins: list?.pins ?? [:]))
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

  /// Replaces the pins of the IP list. Must be called before the list is used.
  func setPins(_ pins: [String: [PublicKeyPin]]) {
    state.withLock { state in
      guard pins != state.listPins else { return }
      state.listPins = pins
      transport.setPins(pins)
      setPartitions(state)
    }
  }

  /// Gives the cache the partitions of the settings in use. Gives it partitions that no other client has while
  /// the settings change, and if libcrypto cannot compute the digest that names the partitions. Called under the
  /// lock, so that the last change decides.
  private func setPartitions(_ state: State) {
    guard let cache else { return }
    let settings = state.isApplying ? nil : state.loaded.with(listPins: state.listPins)
    let digest = settings.flatMap { try? cache.configuration.settingsDigest($0) }
    cache.cache.setSettings(digest ?? "own \(UInt64.random(in: 0 ... .max))")
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
    let tls = tls
    do throws(NetOptError) {
      loaded = try await OwnThread.run { () throws(NetOptError) in
        let loaded = try LoadedTLS(tls)
        try loaded.checkAuthorities()
        return loaded
      }
    } catch {
      warn(
        NetOptError(
          error.code, phase: error.phase,
          "a certificate file has changed and cannot be used, so the client keeps what it had: \(error.message)",
          underlying: error.underlying))
      return
    }
    // Until the transport has the new settings, a connection may use the old or the new settings. Meanwhile
    // the cache uses partitions that no other client has.
    state.withLock { state in
      state.isApplying = true
      setPartitions(state)
    }
    await transport.setTLS(loaded.usual, loaded.hosts)
    state.withLock { state in
      state.isApplying = false
      state.loaded = loaded
      setPartitions(state)
    }
  }
}
