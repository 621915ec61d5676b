import NetOptCore

extension ClientConfiguration.TLS {
  /// Reads the object `tls`: the settings for all hosts, and those for single hosts.
  mutating func read(_ object: SettingObject) {
    readShared(object)
    object.file("key_log", &keyLog)
    if let value = object.member("pins"), let entries = Self.hosts(value, mayBeStar: true) {
      for (name, value) in entries {
        guard let texts = SettingObject.texts(value, Self.pin, Self.readPin) else { continue }
        if texts.isEmpty { value.refuse("is empty, so no key could be accepted") }
        pins[name] = texts
        value.change(to: .array(texts.map(JSONValue.string)))
      }
    }
    if let value = object.member("hosts"), let entries = Self.hosts(value, mayBeStar: false) {
      for (name, value) in entries {
        guard let object = SettingObject(value) else { continue }
        value.change(to: [:])
        var settings = Self()
        settings.readShared(object)
        object.finish()
        hosts[name] = settings
      }
    }
  }

  /// Reads the settings that single hosts may have too.
  private mutating func readShared(_ object: SettingObject) {
    object.exclude("ca_pem", "ca_file")
    object.file("ca_file", &caFile)
    if let value = object.member("ca_pem"), let text = value.text("certificates in PEM form") {
      caBytes = Array(text.utf8)
      value.change(to: .string("\(text.utf8.count) bytes"))
    }
    object.file("revocation_file", &revocationFile)
    object.word("minimum_version", &minimumVersion)
    object.word("maximum_version", &maximumVersion)
    object.text("cipher_list", &cipherList)
    object.text("cipher_suites", &cipherSuites)
    object.object("client_certificate") { clientCertificate = ClientCertificate(reading: $0) }
  }

  /// Reads an object whose keys are host names. Reports two names of the same host.
  private static func hosts(
    _ value: SettingValue, mayBeStar: Bool
  ) -> [(key: String, value: SettingValue)]? {
    var seen: Set<String> = []
    return value.members("an object with host names as keys")?.filter { name, value in
      if name == "*", mayBeStar { return true }
      guard let host = ClientConfiguration.host(name) else {
        value.refuse("is not under a host name; write the name without scheme, port and path")
        return false
      }
      if seen.insert(host).inserted { return true }
      value.refuse("is under a name of the same host as another entry")
      return false
    }
  }

  private static let pin = "sha256/ and the SHA-256 hash of a public key in base64, 44 characters"

  private static func readPin(_ value: SettingValue) -> String? {
    guard let text = value.text(pin) else { return nil }
    if PublicKeyPin(text) != nil { return text }
    value.refuse("is not a pin: \(pin)")
    return nil
  }
}

extension ClientConfiguration {
  /// Returns a host name in the form of origins; `nil` for a text that is no host name.
  static func host(_ name: String) -> String? { try? hostName(name, in: "") }
}

extension ClientCertificate {
  /// Reads a client certificate; `nil` after a fault.
  fileprivate init?(reading object: SettingObject) {
    object.forbid(
      "passphrase",
      "does not belong in the file; put the passphrase into an environment variable, and name the variable in passphrase_env"
    )
    var (certificate, key, bundle): (String?, String?, String?)
    object.exclude("pkcs12_file", "certificate_file")
    object.exclude("pkcs12_file", "key_file")
    object.file("certificate_file", &certificate)
    object.file("key_file", &key)
    object.file("pkcs12_file", &bundle)
    if !object.has("pkcs12_file") { object.require("certificate_file") }
    var passphrase: Passphrase?
    if let value = object.member("passphrase_env"), let variable = value.variable() {
      passphrase = { variable.value }
      value.change(to: .string(variable.name))
    }
    if let bundle {
      self.init(pkcs12File: bundle, passphrase: passphrase)
    } else if let certificate {
      self.init(certificateFile: certificate, keyFile: key, passphrase: passphrase)
    } else {
      return nil
    }
  }
}
