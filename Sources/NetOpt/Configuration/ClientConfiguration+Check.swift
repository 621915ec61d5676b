import Glibc
import NetOptCaching
import NetOptCore
import NetOptEngine

extension ClientConfiguration {
  /// Checks all settings before the client creates anything. Finds numbers that would later block a transfer
  /// or a timer, a proxy that cannot be used, and a `User-Agent` that would add header fields to every
  /// request.
  ///
  /// - Returns: the configuration, with the hosts of `signing`, `authorization` and `cookieHosts` in the form
  ///   of origins.
  /// - Throws: `invalidConfiguration` with the setting, its value and the allowed range.
  func checked() throws(NetOptError) -> ClientConfiguration {
    try Probing.budgets.check(probing.budget, "probing.budget")
    try Probing.concurrencies.check(probing.concurrency, "probing.concurrency")
    try Probing.waits.check(probing.firstRequestWait, "probing.firstRequestWait")
    try ResolverConfiguration.timeouts.check(dns.timeout, "dns.timeout", in: .resolve)
    try ResolverConfiguration.attempts.check(dns.tries, "dns.tries", in: .resolve)
    try connections.check()
    try cache?.check()
    if case .url(let url) = proxy, let fault = ProxyURL.fault(of: url) {
      throw NetOptError(
        .invalidConfiguration, phase: .connect, "the URL of the proxy cannot be used: \(fault)")
    }
    try CurlConfiguration.checkUserAgent(userAgent)
    try checkDefaults()
    try telemetry?.check()
    return try withSignedHosts().withAuthorizedHosts().withCookieHosts()
  }

  /// Returns the configuration with the hosts of `authorization` in the form of origins.
  ///
  /// - Throws: `invalidConfiguration` for a text that is no host name, for credentials without a host, and
  ///   for credentials that cannot be a field's value.
  private func withAuthorizedHosts() throws(NetOptError) -> ClientConfiguration {
    var configuration = self
    for (index, setting) in authorization.enumerated() {
      guard !setting.hosts.isEmpty else {
        throw NetOptError(
          .invalidConfiguration, phase: .send,
          "authorization has credentials without hosts, so no request would get them; name the hosts")
      }
      if case .basic(let user, _) = setting.source, user.utf8.contains(UInt8(ascii: ":")) {
        throw NetOptError(
          .invalidConfiguration, phase: .send,
          "the user name in authorization for \(setting.hosts.sorted()[0]) has a colon, which Basic does not allow"
        )
      }
      if let value = setting.value, HeaderFields.fault(of: HeaderField("Authorization", value)) != nil {
        throw NetOptError(
          .invalidConfiguration, phase: .send,
          "the token in authorization for \(setting.hosts.sorted()[0]) has a character that a header field cannot have"
        )
      }
      configuration.authorization[index].hosts = try Self.hostNames(
        setting.hosts, in: "authorization.hosts", .send)
    }
    return configuration
  }

  /// Returns the configuration with `cookieHosts` in the form of origins.
  ///
  /// - Throws: `invalidConfiguration` for a text that is no host name.
  private func withCookieHosts() throws(NetOptError) -> ClientConfiguration {
    var configuration = self
    configuration.cookieHosts = try Self.hostNames(cookieHosts, in: "cookieHosts", .send)
    return configuration
  }

  private func checkDefaults() throws(NetOptError) {
    if let limit = defaults.timeout { try Defaults.timeouts.check(limit, "defaults.timeout", in: .send) }
    let credentials = (cache ?? Cache()).credentials(orUsual: true)
    for field in defaults.headers {
      guard let fault = Defaults.fault(of: field, credentials) else { continue }
      throw Self.invalid(field, in: "defaults.headers", fault)
    }
  }

  /// Returns the error for a header field of a setting, without the field's value.
  static func invalid(_ field: HeaderField, in setting: String, _ fault: String) -> NetOptError {
    // A name that is no token may contain the value.
    let shown = HeaderFields.isToken(field.name) ? "the field \(field.name), which" : "a field that"
    return NetOptError(.invalidConfiguration, phase: .send, "\(setting) has \(shown) \(fault)")
  }

  /// Returns the configuration with the hosts of `signing` in the form of origins.
  ///
  /// - Throws: `invalidConfiguration` for a text that is no host name, and if there is none: the client would
  ///   silently sign nothing.
  private func withSignedHosts() throws(NetOptError) -> ClientConfiguration {
    guard let signing else { return self }
    guard !signing.hosts.isEmpty else {
      throw NetOptError(
        .invalidConfiguration, phase: .sign,
        "signing.hosts is empty, so no request would be signed; name the hosts, or set signing to nil")
    }
    var configuration = self
    configuration.signing?.hosts = try Self.hostNames(signing.hosts, in: "signing.hosts", .sign)
    return configuration
  }

  /// Returns the host names of a setting in the form of origins.
  ///
  /// - Throws: `invalidConfiguration` for the first text in order that is no host name.
  private static func hostNames(
    _ names: Set<String>, in setting: String, _ phase: NetOptError.Phase
  ) throws(NetOptError) -> Set<String> {
    var hosts: Set<String> = []
    for name in names.sorted() { hosts.insert(try hostName(name, in: setting, phase)) }
    return hosts
  }

  /// Returns a host name of a setting in the form of origins.
  ///
  /// - Throws: `invalidConfiguration` for a text that is no host name, such as one with a port: the setting
  ///   would silently apply to no host.
  static func hostName(
    _ name: String, in setting: String, _ phase: NetOptError.Phase = .tls
  ) throws(NetOptError) -> String {
    let host = Origin.normalized(host: name)
    guard HTTPURL.hostNameFault(host) == nil || IPAddress(host) != nil else {
      throw NetOptError(
        .invalidConfiguration, phase: phase,
        "\(setting) has \"\(HTTPURL.shown(given: name))\", which is no host name; write it without scheme, port and path"
      )
    }
    return IPAddress(host)?.description ?? host
  }

  /// Checks that each file of certificate authorities is a regular file. netopt reads it again when it
  /// changes.
  ///
  /// - Throws: `invalidConfiguration`.
  func checkAuthorityFiles() throws(NetOptError) {
    for path in ([tls] + tls.hosts.values).compactMap(\.caFile) {
      // A missing file passes this check; reading it throws the error.
      guard access(path, F_OK) != 0 || FileBytes.isRegular(path) else {
        throw NetOptError(
          .invalidConfiguration, phase: .tls,
          "\(path) is not a regular file; netopt reads the authorities more than once, so copy them to a file"
        )
      }
    }
  }
}

extension ClientConfiguration.Probing {
  /// The range of `budget`.
  static let budgets = SettingRange(Duration.milliseconds(1) ... .seconds(3600), "1 ms to 1 h")
  /// The range of `concurrency`.
  static let concurrencies = SettingRange(1...65_536)
  /// The range of `firstRequestWait`.
  static let waits = SettingRange(Duration.zero ... .seconds(3600), "0 s to 1 h")
}

extension ClientConfiguration.Defaults {
  /// The range of `timeout`.
  static let timeouts = SettingRange(Duration.milliseconds(1) ... .seconds(365 * 86_400), "1 ms to 365 days")

  /// The names of fields, in lower case, that would break or falsify requests if all of them had the same
  /// value. With an idempotency key, for example, servers would take all requests for one.
  private static let fieldsOfOneRequest: Set = [
    "host", "content-length", "content-encoding", "transfer-encoding", "connection", "upgrade",
    "http2-settings", "expect", "trailer", "te", "idempotency-key", "x-idempotency-key", "range", "if-match",
    "if-none-match",
    "if-modified-since", "if-unmodified-since", "if-range", "traceparent", "tracestate",
  ]

  /// Returns the rule that a field breaks if many requests have it, without its value; `nil` if it breaks none.
  static func faultInMany(_ field: HeaderField) -> String? {
    if let fault = HeaderFields.fault(of: field) { return "cannot be sent: \(fault)" }
    return fieldsOfOneRequest.contains(field.name.loweredASCII)
      ? "belongs to a single request or connection" : nil
  }

  /// Returns the rule that a field of `headers` breaks, without its value; `nil` if it breaks none.
  ///
  /// - Parameter credentials: the fields that carry credentials.
  static func fault(of field: HeaderField, _ credentials: CredentialFields) -> String? {
    if let fault = faultInMany(field) { return fault }
    guard credentials.contains(field.name) else { return nil }
    return "carries credentials and would go to every host; use authorization, which names hosts"
  }
}

extension ClientConfiguration.Connections {
  fileprivate func check() throws(NetOptError) {
    try CurlConfiguration.connectionCounts.check(perEndpoint, "connections.perEndpoint")
    try CurlConfiguration.connectionCounts.check(total, "connections.total")
    try CurlConfiguration.idleCounts.check(idle, "connections.idle")
    try CurlConfiguration.ages.check(idleAge, "connections.idleAge")
    if let lifetime { try CurlConfiguration.ages.check(lifetime, "connections.lifetime") }
    try CurlConfiguration.bodyBuffers.check(bodyBuffer, "connections.bodyBuffer")
  }
}

extension ClientConfiguration.Cache {
  /// The range of sizes in bytes.
  static let sizes = SettingRange(0...1 << 50)
  /// The range of `maxAge` and `staleWhenUnreachable`.
  static let ages = SettingRange(Duration.zero ... .seconds(36_500 * 86_400), "0 s to 36500 days")

  fileprivate func check() throws(NetOptError) {
    try Self.sizes.check(maxBytes, "cache.maxBytes", in: .cache)
    try Self.sizes.check(maxDiskBytes, "cache.maxDiskBytes", in: .cache)
    try Self.sizes.check(maxEntryBytes, "cache.maxEntryBytes", in: .cache)
    try Self.sizes.check(maxPendingBytes, "cache.maxPendingBytes", in: .cache)
    if let maxAge { try Self.ages.check(maxAge, "cache.maxAge", in: .cache) }
    try Self.ages.check(staleWhenUnreachable, "cache.staleWhenUnreachable", in: .cache)
    for (setting, names) in [("credentialFields", credentialFields), ("harmlessFields", harmlessFields)] {
      guard let name = names.sorted().first(where: { !HeaderFields.isToken($0) }) else { continue }
      throw NetOptError(
        .invalidConfiguration, phase: .cache,
        "cache.\(setting) has \(name.debugDescription), which is not a field name (RFC 9110, section 5.1)"
      )
    }
  }
}
