import NetOptCore
import NetOptEngine

/// The TLS settings of a client, with the content that the files had when it was read. Everything that
/// depends on the files uses this content: the connections, and the partitions of the cache.
struct LoadedTLS: Sendable {
  /// The settings of the hosts that have none of their own.
  let usual: TLSSettings
  /// The settings of the hosts that have settings or pins of their own, by name.
  let hosts: [String: TLSSettings]
  /// What decides which servers the client trusts, and who it is. Empty for the default settings.
  private(set) var trustTexts: [[UInt8]]

  /// Adds the pins of the IP list to what decides which servers the client trusts.
  func with(listPins: [String: [PublicKeyPin]]) -> LoadedTLS {
    var copy = self
    for (host, pins) in listPins.sorted(by: { $0.key < $1.key }) where !pins.isEmpty {
      copy.trustTexts.append(Array("list pins of \(host) \(PublicKeyPin.curlText(pins))".utf8))
    }
    return copy
  }

  /// The key of the pins of every host that has none of its own.
  private static let everyHost = "*"

  /// Reads the files, and checks the settings.
  ///
  /// - Throws: `invalidConfiguration`, with the setting or the file.
  init(_ tls: ClientConfiguration.TLS) throws(NetOptError) {
    var pins = try Self.pins(of: tls)
    let usualPins = pins.removeValue(forKey: Self.everyHost) ?? []
    let usual = try Self.settings(tls, "tls", pins: usualPins)
    var texts = usual.trustTexts
    var hosts: [String: TLSSettings] = [:]
    for (name, own) in tls.hosts.sorted(by: { $0.key < $1.key }) {
      let host = try ClientConfiguration.hostName(name, in: "tls.hosts")
      guard own.hosts.isEmpty, own.pins.isEmpty, own.keyLog == nil else {
        throw NetOptError(
          .invalidConfiguration, phase: .tls,
          "tls.hosts[\"\(host)\"] has hosts, pins or keyLog; set these in tls itself")
      }
      let settings = try Self.settings(own, "tls.hosts[\"\(host)\"]", pins: pins[host] ?? usualPins)
      hosts[host] = settings
      texts.append(Array("host \(host) \(settings.trustTexts.count)".utf8))
      texts += settings.trustTexts
    }
    for (host, pins) in pins.sorted(by: { $0.key < $1.key }) where hosts[host] == nil {
      var settings = usual
      settings.pins = pins
      hosts[host] = settings
      texts.append(Array("pins of \(host) \(PublicKeyPin.curlText(pins))".utf8))
    }
    (self.usual, self.hosts, trustTexts) = (usual, hosts, texts)
  }

  /// Checks that OpenSSL can read all own authorities and revocation lists. Takes as long as parsing them.
  ///
  /// - Throws: `invalidConfiguration`.
  func checkAuthorities() throws(NetOptError) {
    for settings in [usual] + hosts.values where !settings.hasReadableAuthorities {
      throw NetOptError(
        .invalidConfiguration, phase: .tls,
        "\(settings.authoritiesName), or the file of revocation lists with it, has a block that OpenSSL cannot read"
      )
    }
  }

  /// The files that the settings name. Their changes take effect in a running client.
  static func files(of tls: ClientConfiguration.TLS) -> [String] {
    ([tls] + tls.hosts.values).flatMap { one in
      [one.caFile, one.revocationFile].compactMap(\.self)
        + (one.clientCertificate?.form.sources.compactMap(\.path) ?? [])
    }
  }

  /// - Parameter name: the name of the settings, for messages.
  private static func settings(
    _ tls: ClientConfiguration.TLS, _ name: String, pins: [PublicKeyPin]
  ) throws(NetOptError) -> TLSSettings {
    var settings = TLSSettings()
    guard tls.caFile == nil || tls.caBytes == nil else {
      throw NetOptError(
        .invalidConfiguration, phase: .tls, "\(name) has both caFile and caBytes; give one of them")
    }
    if let file = tls.caFile {
      settings.authorities = try read { () throws(NetOptError) in try AuthorityFile.read(file) }
      settings.authoritiesName = FileBytes.shown(file)
    } else if let bytes = tls.caBytes {
      settings.authorities = bytes
      settings.authoritiesName = "\(name).caBytes"
    }
    if let file = tls.revocationFile {
      settings.revocations = try read { () throws(NetOptError) in try RevocationFile.read(file) }
    }
    settings.minimumVersion = tls.minimumVersion
    settings.maximumVersion = tls.maximumVersion
    settings.cipherList = tls.cipherList
    settings.cipherSuites = tls.cipherSuites
    settings.identity = try tls.clientCertificate.map { source throws(NetOptError) in
      try read { () throws(NetOptError) in try ClientIdentity.read(source) }
    }
    settings.pins = pins
    try settings.check(name)
    return settings
  }

  /// Reads a file. A file that cannot be read is an invalid setting.
  private static func read<Content>(
    _ content: () throws(NetOptError) -> Content
  ) throws(NetOptError) -> Content {
    do throws(NetOptError) { return try content() } catch {
      guard error.code == .unreadableFile else { throw error }
      throw NetOptError(.invalidConfiguration, phase: .tls, error.message, underlying: error.underlying)
    }
  }

  private static func pins(of tls: ClientConfiguration.TLS) throws(NetOptError) -> [String: [PublicKeyPin]] {
    var all: [String: [PublicKeyPin]] = [:]
    for (name, texts) in tls.pins {
      let host = name == everyHost ? name : try ClientConfiguration.hostName(name, in: "tls.pins")
      guard !texts.isEmpty else {
        throw NetOptError(
          .invalidConfiguration, phase: .tls, "tls.pins[\"\(host)\"] is empty, so no key could be accepted")
      }
      all[host] = try texts.map { text throws(NetOptError) in
        guard let pin = PublicKeyPin(text) else {
          throw NetOptError(
            .invalidConfiguration, phase: .tls,
            "tls.pins[\"\(host)\"] has \"\(text.printable(80))\", which is no pin; a pin is sha256/ and the SHA-256 hash of a public key in base64, 44 characters"
          )
        }
        return pin
      }
    }
    return all
  }
}

extension TLSSettings {
  /// What decides which servers the settings trust, and who the client is.
  fileprivate var trustTexts: [[UInt8]] {
    var texts: [[UInt8]] = []
    if let authorities { texts.append(Array("authorities".utf8) + authorities) }
    if let revocations { texts.append(Array("revocations".utf8) + revocations) }
    if let identity { texts.append(Array("certificate".utf8) + identity.bytes) }
    if !pins.isEmpty { texts.append(Array("pins \(PublicKeyPin.curlText(pins))".utf8)) }
    return texts
  }
}
