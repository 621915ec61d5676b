import NetOptCore
import NetOptRouting
import NetOptSigning
import TestTools

@testable import NetOpt

/// A setting of the configuration file: its place, random valid values, and how it is read back from a
/// `ClientConfiguration`.
struct SettingSample: Sendable {
  /// Draws a value that differs from the default.
  typealias Draw = @Sendable (inout SplitMix64) -> JSONValue

  /// The keys that lead to the setting. The host of `tls.hosts` is `api.test`; `[0]` is the first element of
  /// an array.
  let path: [String]
  /// The property, in the form of docs/api without `ClientConfiguration.`.
  let property: String
  let draw: Draw
  /// The value in the form of the file, with resolved paths.
  let read: @Sendable (ClientConfiguration) -> JSONValue

  init(
    _ path: String, _ property: String, _ draw: @escaping Draw,
    _ read: @escaping @Sendable (ClientConfiguration) -> JSONValue
  ) {
    self.path = path.split(separator: "/").map(String.init)
    self.property = property
    self.draw = draw
    self.read = read
  }

  /// The keys as the schema has them, with `[]` for each element of an array.
  var keys: [String] { path.map { $0.hasPrefix("[") ? "[]" : $0 } }

  // MARK: Values

  /// The opposite of a flag's default.
  static func flag(_ value: Bool) -> Draw { { _ in .bool(value) } }

  /// A number from a range, or one of its bounds.
  static func number(_ range: ClosedRange<Int64>, but usual: Int64? = nil) -> Draw {
    { random in
      let inner = range.lowerBound + Int64(random.below(UInt64(range.upperBound - range.lowerBound)))
      let drawn = random.element(of: [range.lowerBound, range.upperBound, inner])
      return .integer(drawn == usual ? range.upperBound : drawn)
    }
  }

  /// One of some words.
  static func word(_ words: String...) -> Draw { { .string($0.element(of: words)) } }

  /// A short text, also of characters that JSON escapes.
  static func text(_ random: inout SplitMix64) -> JSONValue { .string(name(&random)) }

  private static func name(_ random: inout SplitMix64) -> String {
    let letters = ["a", "Z", "0", "-", "é", "\"", "\\", "😀", "/", " "]
    return "t" + (0...random.below(8)).map { _ in random.element(of: letters) }.joined()
  }

  /// A relative or absolute path.
  static func path(_ random: inout SplitMix64) -> JSONValue { .string(file(&random)) }

  private static func file(_ random: inout SplitMix64) -> String {
    (random.isOne(in: 2) ? "/etc/" : "") + "f\(random.below(1000)).pem"
  }

  /// Up to three different values of a kind.
  static func several(_ draw: @escaping Draw, atLeast least: Int = 1) -> Draw {
    { random in
      var values: [JSONValue] = []
      for _ in 0..<(UInt64(least) + random.below(3)) {
        let value = draw(&random)
        if !values.contains(value) { values.append(value) }
      }
      return .array(values)
    }
  }

  static let server: Draw = { random in
    .string(
      random.element(of: [
        "192.0.2.\(random.below(256))", "192.0.2.1:5353", "2001:db8::1", "[2001:db8::2]:53",
      ]))
  }
  static let pin: Draw = { random in
    .string("sha256/" + (0..<42).map { _ in random.element(of: ["A", "b", "9", "+", "/"]) }.joined() + "A=")
  }
  static let field: Draw = { .string("X-Field-\($0.below(1000))") }
  /// Keys of minisign.
  static let keys: Draw = several({ random in
    let key = MinisignPublicKey(
      idBytes: (0..<8).map { _ in UInt8(random.below(256)) }, key: [UInt8](repeating: 7, count: 32))
    return .string(key.description)
  })
}

extension SettingSample {
  /// The settings of the outermost object and of the objects without conditions.
  private static let plain: [SettingSample] = [
    .init("list/file", "list", path) { $0.list.file },
    .init("list_updates/refresh", "ListUpdates.refresh", flag(false)) { .bool($0.listUpdates.refresh) },
    .init("list_updates/keep_copy", "ListUpdates.keepCopy", flag(false)) { .bool($0.listUpdates.keepCopy) },
    .init("list_updates/watch_file", "ListUpdates.watchFile", flag(false)) {
      .bool($0.listUpdates.watchFile)
    },
    .init("list_updates/state_directory", "ListUpdates.stateDirectory", path) {
      .optional($0.listUpdates.stateDirectory)
    },
    .init("trusted_keys", "trustedKeys", keys) { .array($0.trustedKeys.map { .string($0.description) }) },
    .init("allow_private_addresses", "allowPrivateAddresses", flag(true)) { .bool($0.allowPrivateAddresses) },
    .init("routing/region", "RoutingConfiguration.region", text) { .optional($0.routing.region) },
    .init("routing/isp", "RoutingConfiguration.isp", text) { .optional($0.routing.isp) },
    .init("routing/policy", "RoutingConfiguration.policy", word("balanced", "pinned")) {
      .string($0.routing.policy.rawValue)
    },
    .init("probing/at_start", "Probing.atStart", flag(false)) { .bool($0.probing.atStart) },
    .init("probing/in_background", "Probing.inBackground", flag(false)) { .bool($0.probing.inBackground) },
    .init("probing/method", "Probing.method", word("tcp", "tls", "http", "icmp")) {
      .optional($0.probing.method?.rawValue)
    },
    .init("probing/budget_ms", "Probing.budget", number(1...3_600_000, but: 1000)) {
      .milliseconds($0.probing.budget)
    },
    .init("probing/concurrency", "Probing.concurrency", number(1...65_536, but: 64)) {
      .optional($0.probing.concurrency)
    },
    .init("probing/first_request_wait_ms", "Probing.firstRequestWait", number(0...3_600_000, but: 100)) {
      .milliseconds($0.probing.firstRequestWait)
    },
    .init("ranking_history/directory", "rankingHistory", path) { $0.rankingHistory.directory },
    .init("dns/servers", "DNS.servers", several(server)) { .texts($0.dns.servers) },
    .init("dns/timeout_ms", "DNS.timeout", number(1...60_000, but: 500)) { .milliseconds($0.dns.timeout) },
    .init("dns/tries", "DNS.tries", number(1...10, but: 2)) { .optional($0.dns.tries) },
    .init("connections/per_endpoint", "Connections.perEndpoint", number(1...1_000_000, but: 16)) {
      .optional($0.connections.perEndpoint)
    },
    .init("connections/total", "Connections.total", number(1...1_000_000, but: 256)) {
      .optional($0.connections.total)
    },
    .init("connections/idle", "Connections.idle", number(0...1_000_000, but: 64)) {
      .optional($0.connections.idle)
    },
    .init("connections/idle_age_s", "Connections.idleAge", number(1...31_536_000, but: 55)) {
      .seconds($0.connections.idleAge)
    },
    .init("connections/lifetime_s", "Connections.lifetime", number(1...31_536_000)) {
      .seconds($0.connections.lifetime)
    },
    .init("connections/body_buffer_bytes", "Connections.bodyBuffer", number(1...1 << 30, but: 524_288)) {
      .optional($0.connections.bodyBuffer)
    },
    .init("proxy", "proxy", word("none", "http://proxy.test:3128", "socks5h://[::1]:1080")) {
      $0.proxy.text
    },
    .init("proxy_env", "proxy", word("PROXY")) { $0.proxy.text == .string(Self.proxy) ? "PROXY" : .null },
    .init("user_agent", "userAgent", text) { .string($0.userAgent) },
  ]

  /// The URL in the variable `PROXY` of the tests.
  static let proxy = "http://user:hunter2@proxy.test:3128"
  /// The passphrase in the variable `PHRASE` of the tests.
  static let passphrase = "hunter2 too"

  /// A text in PEM form. Its content is checked only when a connection is made.
  private static let pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

  /// The settings of `tls`, or of a host in `tls`.
  private static func tls(
    _ prefix: String, _ get: @escaping @Sendable (ClientConfiguration) -> ClientConfiguration.TLS?
  ) -> [SettingSample] {
    let certificate = prefix + "client_certificate/"
    return [
      .init(prefix + "ca_file", "TLS.caFile", path) { .optional(get($0)?.caFile) },
      .init(prefix + "ca_pem", "TLS.caBytes", { _ in .string(pem) }) {
        .optional(get($0)?.caBytes.map { String(decoding: $0, as: UTF8.self) })
      },
      .init(prefix + "revocation_file", "TLS.revocationFile", path) { .optional(get($0)?.revocationFile) },
      .init(prefix + "minimum_version", "TLS.minimumVersion", word("1.3")) {
        .optional(get($0)?.minimumVersion.rawValue)
      },
      .init(prefix + "maximum_version", "TLS.maximumVersion", word("1.3")) {
        .optional(get($0)?.maximumVersion?.rawValue)
      },
      .init(prefix + "cipher_list", "TLS.cipherList", word("HIGH", "ECDHE-RSA-AES128-GCM-SHA256")) {
        .optional(get($0)?.cipherList)
      },
      .init(prefix + "cipher_suites", "TLS.cipherSuites", word("TLS_AES_128_GCM_SHA256")) {
        .optional(get($0)?.cipherSuites)
      },
      .init(certificate + "certificate_file", "TLS.clientCertificate", path) {
        .optional(get($0)?.clientCertificate?.files.certificate)
      },
      .init(certificate + "key_file", "TLS.clientCertificate", path) {
        .optional(get($0)?.clientCertificate?.files.key)
      },
      .init(certificate + "pkcs12_file", "TLS.clientCertificate", path) {
        .optional(get($0)?.clientCertificate?.files.bundle)
      },
      .init(certificate + "passphrase_env", "TLS.clientCertificate", word("PHRASE")) {
        (try? get($0)?.clientCertificate?.passphrase?()) == passphrase ? "PHRASE" : .null
      },
    ]
  }

  private static let cache: [SettingSample] = [
    .init("cache/partition", "Cache.options", text) { .optional($0.cache?.options.partition) },
    .init("cache/max_bytes", "Cache.maxBytes", number(0...1 << 50, but: 64 << 20)) {
      .optional($0.cache?.maxBytes)
    },
    .init("cache/directory", "Cache.directory", path) { .optional($0.cache?.directory) },
    .init("cache/max_disk_bytes", "Cache.maxDiskBytes", number(0...1 << 50, but: 1 << 30)) {
      .optional($0.cache?.maxDiskBytes)
    },
    .init("cache/max_age_s", "Cache.maxAge", number(0...3_153_600_000)) { .seconds($0.cache?.maxAge) },
    .init("cache/max_entry_bytes", "Cache.maxEntryBytes", number(0...1 << 50, but: 4 << 20)) {
      .optional($0.cache?.maxEntryBytes)
    },
    .init("cache/max_pending_bytes", "Cache.maxPendingBytes", number(0...1 << 50, but: 32 << 20)) {
      .optional($0.cache?.maxPendingBytes)
    },
    .init(
      "cache/stale_when_unreachable_s", "Cache.staleWhenUnreachable", number(0...3_153_600_000, but: 86_400)
    ) { .seconds($0.cache?.staleWhenUnreachable) },
    .init("cache/seed_packs", "Cache.seedPacks", several(path)) { .texts($0.cache?.seedPacks) },
    .init("cache/extra_credential_fields", "Cache.credentialFields", several(field)) {
      let usual = ClientConfiguration.Cache().credentialFields
      return .texts($0.cache.map { $0.credentialFields.subtracting(usual).sorted() })
    },
    .init("cache/extra_harmless_fields", "Cache.harmlessFields", several(field)) {
      let usual = ClientConfiguration.Cache().harmlessFields
      return .texts($0.cache.map { $0.harmlessFields.subtracting(usual).sorted() })
    },
    .init("cache/mode/api/name", "CacheOptions.Declaration.name", text) { .optional($0.declaration?.name) },
    .init("cache/mode/api/time_to_live_s", "CacheOptions.Declaration.timeToLive", number(0...3_153_600_000)) {
      .seconds($0.declaration?.timeToLive)
    },
    .init("cache/mode/api/serve_and_refresh_s", "CacheOptions.Declaration.expired", number(0...3_153_600_000))
    {
      guard case .serveAndRefresh(let within) = $0.declaration?.expired else { return .null }
      return .seconds(within)
    },
    .init(
      "cache/mode/api/negative_time_to_live_s", "CacheOptions.Declaration.negativeTimeToLive",
      number(0...3_153_600_000)
    ) { .seconds($0.declaration?.negativeTimeToLive) },
    .init("cache/mode/versioned/name", "CacheOptions.Versions.name", text) { .optional($0.versions?.name) },
    .init("cache/mode/versioned/parameter", "CacheOptions.Versions.parameter", text) {
      .optional($0.versions?.parameter)
    },
    .init("cache/mode/versioned/threshold", "CacheOptions.Versions.threshold", number(2...Int64.max)) {
      .optional($0.versions?.threshold)
    },
  ]

  private static let signing: [SettingSample] = [
    .init("signing/keys_file", "Signing.signer", word("keys.json")) {
      $0.signing.map { _ in .string("keys.json") } ?? .null
    },
    .init("signing/key_id", "Signing.signer", word("k1", "k2")) { .optional($0.signing?.signer.key.id) },
    .init("signing/scheme", "Signing.signer", word("rfc9421", "sigv4", "salted-md5")) {
      .optional($0.signing?.signer.scheme.name.rawValue)
    },
    .init("signing/options", "Signing.signer", { _ in [:] }) { _ in [:] },
    .init("signing/allow_weak", "Signing.signer", flag(true)) { _ in true },
    .init("signing/trust_plain_dates", "Signing.trustsPlainDates", flag(true)) {
      .bool($0.signing?.trustsPlainDates == true)
    },
    .init("signing/hosts", "Signing.hosts", { _ in ["api.test", "www.test"] }) {
      .texts($0.signing.map { $0.hosts.sorted() })
    },
  ]

  /// All settings of the file.
  static let all: [SettingSample] =
    plain + tls("tls/") { $0.tls }
    + [
      .init("tls/key_log", "TLS.keyLog", path) { .optional($0.tls.keyLog) },
      .init("tls/pins/api.test", "TLS.pins", several(pin)) { .texts($0.tls.pins["api.test"]) },
    ] + tls("tls/hosts/api.test/") { $0.tls.hosts["api.test"] } + cache + signing + defaults
    + authorization(0) + authorization(1) + [cookies] + telemetry
}

// MARK: Values in the form of the file

extension JSONValue {
  static func milliseconds(_ duration: Duration?) -> JSONValue {
    .optional(duration.map { $0.microseconds / 1000 })
  }
  static func seconds(_ duration: Duration?) -> JSONValue {
    .optional(duration.map { $0.components.seconds })
  }
  static func texts(_ texts: [String]?) -> JSONValue {
    texts.map { .array($0.map(JSONValue.string)) } ?? .null
  }
}

extension ClientConfiguration {
  fileprivate var declaration: CacheOptions.Declaration? {
    if case .api(let declaration) = cache?.options.mode { declaration } else { nil }
  }
  fileprivate var versions: CacheOptions.Versions? {
    if case .versioned(let versions) = cache?.options.mode { versions } else { nil }
  }
}

extension ClientConfiguration.ListSource {
  fileprivate var file: JSONValue { if case .file(let path) = self { .string(path) } else { .null } }
}

extension ClientConfiguration.History {
  fileprivate var directory: JSONValue {
    if case .directory(let path) = self { .string(path) } else { .null }
  }
}

extension ClientConfiguration.Proxy {
  fileprivate var text: JSONValue {
    switch self {
    case .environment: "environment"
    case .none: "none"
    case .url(let url): .string(url)
    }
  }
}

extension ClientCertificate {
  fileprivate var files: (certificate: String?, key: String?, bundle: String?) {
    switch form {
    case .pem(let certificate, let key): (certificate.path, key?.path, nil)
    case .pkcs12(let source): (nil, nil, source.path)
    }
  }
}
