package import NetOptCore

extension TLSSettings {
  /// The maximum length of a list of cipher suites in bytes.
  private static let longestList = 4096

  /// Checks the settings.
  ///
  /// - Parameter setting: the name of the settings, for the message: `tls`, or `tls.hosts["api.example.com"]`.
  /// - Throws: `invalidConfiguration`.
  package func check(_ setting: String = "tls") throws(NetOptError) {
    if let maximumVersion, maximumVersion < minimumVersion {
      throw NetOptError(
        .invalidConfiguration, phase: .tls,
        "\(setting).minimumVersion is \(minimumVersion.rawValue), which is newer than maximumVersion, \(maximumVersion.rawValue)"
      )
    }
    if let authorities { try AuthorityFile.check(authorities, named: authoritiesName) }
    if needsOpenSSL, OpenSSL.loaded == nil {
      throw OpenSSL.missing("\(setting) with own authorities, revocation lists or cipher suites")
    }
    for (name, list, used, isOfTLS13) in [
      ("cipherList", cipherList, safeCipherList, false), ("cipherSuites", cipherSuites, cipherSuites, true),
    ] {
      guard let list, let used else { continue }
      // OpenSSL takes an empty list for one that it knows, and a NUL for the end of the list.
      let isUsable = !list.isEmpty && !list.utf8.contains(0) && list.utf8.count <= Self.longestList
      if isUsable, CipherCheck.accepts(used, isOfTLS13) { continue }
      throw NetOptError(
        .invalidConfiguration, phase: .tls,
        "\(setting).\(name) names no cipher suite of \(isOfTLS13 ? "TLS 1.3" : "TLS 1.2") that OpenSSL knows: \"\(list.printable(100))\"; `openssl ciphers -s -v` lists them"
      )
    }
  }
}

extension TLSSettings {
  /// Whether OpenSSL can read the own authorities and revocation lists. Takes as long as parsing them. True
  /// without own authorities.
  package var hasReadableAuthorities: Bool {
    guard let authorities else { return true }
    guard let store = TrustStore(authorities: authorities, revocations: revocations) else { return false }
    store.parse()
    return !store.isDamaged
  }
}

/// Asks OpenSSL whether it accepts lists of cipher suites.
private enum CipherCheck {
  /// Whether OpenSSL accepts a list. Without OpenSSL, every list passes; libcurl refuses it later.
  static func accepts(_ list: String, _ isOfTLS13: Bool) -> Bool {
    guard let functions = Functions.loaded, let context = functions.new(functions.method()) else {
      return true
    }
    defer { functions.free(context) }
    return PEMObjects.clearingErrors {
      isOfTLS13 ? functions.setSuites(context, list) == 1 : functions.setList(context, list) == 1
    }
  }

  /// OpenSSL's functions. Their types are those of the man pages, and nothing checks the types:
  /// SSL_CTX_new(3), SSL_CTX_set_cipher_list(3). `init` shows which function each property is.
  private struct Functions: Sendable {
    typealias Set = @convention(c) (OpaquePointer, UnsafePointer<CChar>) -> Int32
    let method: @convention(c) () -> OpaquePointer?
    let new: @convention(c) (OpaquePointer?) -> OpaquePointer?
    let free: @convention(c) (OpaquePointer) -> Void
    let setList, setSuites: Set

    /// The functions; `nil` without `OpenSSL.loaded`, or if `init` throws.
    static let loaded: Functions? = OpenSSL.loaded == nil ? nil : try? Functions()

    private init() throws(OpenSSL.MissingFunction) {
      method = try OpenSSL.function("TLS_client_method")
      new = try OpenSSL.function("SSL_CTX_new")
      free = try OpenSSL.function("SSL_CTX_free")
      setList = try OpenSSL.function("SSL_CTX_set_cipher_list")
      setSuites = try OpenSSL.function("SSL_CTX_set_ciphersuites")
    }
  }
}
