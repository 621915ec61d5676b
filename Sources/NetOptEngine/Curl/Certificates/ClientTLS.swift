import NetOptCore
import NetOptLocking

/// The TLS settings of a client: those of individual hosts, and those of all other hosts. All multi handles
/// of the client share the object. It parses the certificate authorities when the first connection needs
/// them. More than 16 KiB are parsed on a thread of their own, before the connection is opened: parsing the
/// system's takes 20 ms. Fewer are parsed on the loop while the server prepares its first answer.
///
/// Unchecked sendable: after its creation, the object is confined to the loop.
final class ClientTLS: @unchecked Sendable {
  /// The inputs of a `TrustStore`.
  private struct TrustKey: Hashable, Sendable {
    let authorities: Authorities
    let revocations: [UInt8]?

    init(_ tls: HostTLS) {
      authorities = tls.authorities
      revocations = tls.settings.revocations
    }

    func load(parsesLater: Bool) -> Trust {
      authorities.load(revocations: revocations, parsesLater: parsesLater)
    }

    /// The number of bytes to parse; `nil` for the system's authorities, which are not read yet.
    var size: Int? {
      guard case .given(let bytes, _) = authorities else { return nil }
      return bytes.count + (revocations?.count ?? 0)
    }
  }

  /// How long connections fail after the authorities could not be loaded, before the next request loads them
  /// again.
  private static let pause = Duration.seconds(1)
  /// The age at which a new connection triggers a reload of the authorities, as in libcurl
  /// (CURLOPT_CA_CACHE_TIMEOUT(3)). Until they are loaded, the older ones are used.
  private static let longestUse = Duration.seconds(86_400)

  /// The most bytes of authorities, of all hosts together, that are parsed on the loop.
  private static let mostAtOnce = 16 << 10

  private let loop: EventLoop
  private let keyLog: KeyLog?
  /// The settings of the hosts that have none of their own, and the settings of single hosts.
  private var settings: (usual: TLSSettings, hosts: [String: TLSSettings])
  /// The pins of the IP list, by host. Pins in the settings take precedence.
  private var listPins: [String: [PublicKeyPin]]
  /// The settings of the hosts that have no settings or pins of their own.
  private var usual: HostTLS
  /// The settings of the hosts that have settings or pins of their own.
  private var hosts: [String: HostTLS] = [:]
  private var trust: [TrustKey: Trust] = [:]
  /// When the authorities were last loaded, or found to be unusable.
  private var loadedAt = MonotonicInstant(nanoseconds: .min)
  private var isLoading = false
  // Unchecked exclusivity: see CurlMulti.
  /// The number of times that the settings have been replaced. No connection that was opened with older
  /// settings is used for a request that comes later.
  @exclusivity(unchecked) private(set) var generation = 0
  /// Whether all authorities are loaded, perhaps not yet parsed.
  @exclusivity(unchecked) private(set) var isSettled = false
  /// The work that waits for the authorities.
  private var waiting: [@Sendable () -> Void] = []

  /// - Throws: `invalidConfiguration` or `unsupported` for the key log.
  init(_ configuration: CurlConfiguration, loop: EventLoop) throws(NetOptError) {
    self.loop = loop
    settings = (configuration.tls, configuration.hosts)
    listPins = configuration.listPins
    keyLog = try configuration.keyLog.map { path throws(NetOptError) in try KeyLog(path) }
    usual = HostTLS(configuration.tls, pins: configuration.tls.pins)
    makeHosts()
  }

  /// Rebuilds `usual` and `hosts`.
  private func makeHosts() {
    usual = HostTLS(settings.usual, pins: settings.usual.pins)
    hosts = [:]
    for host in Set(settings.hosts.keys).union(listPins.keys) {
      let own = settings.hosts[host] ?? settings.usual
      hosts[host] = HostTLS(own, pins: own.pins.isEmpty ? listPins[host] ?? [] : own.pins)
    }
    setTrust()
  }

  // MARK: Connections

  /// Returns the settings of the connections to a host.
  func tls(for host: String) -> HostTLS { hosts.isEmpty ? usual : hosts[host] ?? usual }

  /// Loads the authorities, unless they are loaded. For 1 s after a load that failed, it does not load again,
  /// and requests fail at once.
  ///
  /// - Returns: false if a load is under way, so that a request has to wait for it (`whenReady`).
  func makeReady() -> Bool {
    if !isSettled, !isLoading, !hasTried || loop.now() >= loadedAt + Self.pause { load() }
    return isSettled || !isLoading
  }

  /// Calls `work` when the load that is under way ends, whether it succeeded or not.
  func whenReady(_ work: @escaping @Sendable () -> Void) {
    precondition(isLoading, "no load is under way, so the work would never be done")
    waiting.append(work)
  }

  /// Applies the settings to a context.
  ///
  /// - Parameters:
  ///   - context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  ///   - host: the settings of the server's host; `nil` for a connection to a proxy.
  /// - Returns: the settings that were applied; `nil` when OpenSSL refuses the client certificate.
  func apply(_ host: HostTLS?, to context: OpaquePointer) -> HostTLS? {
    KeyLog.use(keyLog, in: context)
    if isSettled, loop.now() > loadedAt + Self.longestUse { load() }
    let tls = host ?? usual
    // This work runs when the ClientHello has been sent. If the server's certificate comes earlier,
    // `PeerCertificate.prepare` parses.
    if let store = tls.trust?.store, !store.isParsed { _ = loop.submit(Work { store.parse() }) }
    // The client certificate is for servers. A proxy does not learn who the client is.
    return tls.apply(to: context, identifies: host != nil) ? tls : nil
  }

  // MARK: Loading

  /// All settings whose authorities netopt loads.
  private var loadable: [HostTLS] { ([usual] + hosts.values).filter { !$0.leavesAuthoritiesToCurl } }

  /// The inputs of the stores of these settings.
  private var trustKeys: Set<TrustKey> { Set(loadable.map(TrustKey.init)) }

  /// Whether each of these settings has its authorities, or a reason why they could not be loaded.
  private var hasTried: Bool { loadable.allSatisfy { $0.trust != nil } }

  /// Work that the loop does.
  private final class Work: LoopWork {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    func run() { body() }
  }

  private func load() {
    guard !isLoading else { return }
    isLoading = true
    let keys = trustKeys
    // For few authorities, another thread would only add a delay.
    let sizes = keys.compactMap(\.size)
    let areFew = sizes.count == keys.count && sizes.reduce(0, +) <= Self.mostAtOnce
    let load: @Sendable () -> [TrustKey: Trust] = {
      Dictionary(uniqueKeysWithValues: keys.map { ($0, $0.load(parsesLater: areFew)) })
    }
    let isStarted =
      !areFew
      && OwnThread.start {
        let loaded = load()
        _ = self.loop.submit(Work { self.finishLoad(loaded) })
      }
    if !isStarted { finishLoad(load()) }
  }

  private func finishLoad(_ loaded: [TrustKey: Trust]) {
    isLoading = false
    loadedAt = loop.now()
    // Authorities that can no longer be read stay in use.
    trust = loaded.merging(trust) { new, old in new.store == nil && old.store != nil ? old : new }
    setTrust()
    // The settings changed during the load.
    if !hasTried { return load() }
    let keys = trustKeys
    trust = trust.filter { keys.contains($0.key) }
    let work = waiting
    waiting = []
    for work in work { work() }
  }

  /// Gives all settings their authorities, and updates `isSettled`.
  private func setTrust() {
    let loadable = loadable
    for tls in loadable { tls.trust = trust[TrustKey(tls)] }
    isSettled = loadable.allSatisfy(\.hasTrust)
  }

  // MARK: Changes

  /// Replaces the pins of the IP list.
  func setPins(_ pins: [String: [PublicKeyPin]]) {
    guard pins != listPins else { return }
    listPins = pins
    generation += 1
    makeHosts()
  }

  /// Replaces the settings.
  func set(_ usual: TLSSettings, _ hosts: [String: TLSSettings]) {
    settings = (usual, hosts)
    generation += 1
    makeHosts()
  }
}
