import NetOptCaching
import NetOptCore

// What the client adds to requests: `defaults` and `authorization`.

extension ClientConfiguration.Defaults {
  /// Reads the settings.
  ///
  /// - Parameter cache: the settings of the cache, which decide what fields carry credentials.
  mutating func read(_ object: SettingObject, _ cache: ClientConfiguration.Cache?) {
    object.duration("timeout_ms", &timeout, Self.timeouts)
    if let value = object.member("headers") {
      readHeaders(value, (cache ?? ClientConfiguration.Cache()).credentials(orUsual: true))
    }
    if let url = object.member("base_url")?.url() { baseURL = url }
  }

  private mutating func readHeaders(_ value: SettingValue, _ credentials: CredentialFields) {
    for (index, (name, entry)) in (value.members("an object with names of header fields as keys") ?? [])
      .enumerated()
    {
      // Neither message nor path has the key: in {"Cookie: a=b": ""}, it contains the value.
      guard HeaderFields.isToken(name) else {
        value.refuse(
          "has the entry \(index + 1), whose key is not the name of a header field (RFC 9110, section 5.1)")
        continue
      }
      guard let text = entry.text("the value of a header field", mayBeEmpty: true) else { continue }
      if let fault = Self.fault(of: HeaderField(name, text), credentials) {
        entry.refuse(fault)
      } else if headers.contains(name: name) {
        entry.refuse("is under a name of the same field as another entry")
      } else {
        headers.append(HeaderField(name, text))
        entry.change(to: .string(text))
      }
    }
  }
}

extension ClientConfiguration {
  /// Reads `authorization`.
  mutating func readAuthorization(_ object: SettingObject) {
    guard let value = object.member("authorization") else { return }
    var seen: Set<String> = []
    _ = value.forEachElement("objects with hosts, and with basic or bearer_env") { element in
      guard let setting = Authorization(reading: element) else { return }
      // The client would take the credentials of the first entry, and ignore the others.
      let hosts = Set(setting.hosts.compactMap(Self.host))
      if !seen.isDisjoint(with: hosts) { element.refuse("has a host that an entry before it has already") }
      seen.formUnion(hosts)
      authorization.append(setting)
    }
  }
}

extension ClientConfiguration.Authorization {
  /// Reads credentials; `nil` after a fault.
  fileprivate init?(reading value: SettingValue) {
    guard let object = SettingObject(value) else { return nil }
    let literals = ["bearer", "token", "password"].filter(object.has)
    for key in literals { Self.forbid(key, key == "password" ? "basic.password_env" : "bearer_env", object) }
    object.exclude("bearer_env", "basic")
    let hosts = Self.hosts(object)
    var source: Source?
    object.object("basic") { source = Self.basic(reading: $0) }
    if let token = Self.secret("bearer_env", object) { source = .bearer(token) }
    var allowsUnprotected = false
    object.flag("allow_unprotected", &allowsUnprotected)
    object.finish()
    if !object.has("basic"), !object.has("bearer_env"), literals.isEmpty {
      value.refuse("has neither basic nor bearer_env")
    }
    guard let source else { return nil }
    self.init(hosts: Set(hosts), allowsUnprotected: allowsUnprotected, source: source)
  }

  private static func hosts(_ object: SettingObject) -> [String] {
    let count = object.report.faultCount
    object.require("hosts")
    var hosts: [String] = []
    object.texts("hosts", &hosts, { $0.host() }, "host names")
    if hosts.isEmpty, object.report.faultCount == count {
      object.refuse("hosts", "is empty, so no request would get the credentials")
    }
    return hosts
  }

  private static func basic(reading object: SettingObject) -> Source? {
    forbid("password", "password_env", object)
    object.require("user")
    if !object.has("password") { object.require("password_env") }
    var user: String?
    object.text("user", &user, "a user name without colons and line ends", mayBeEmpty: true) {
      !$0.utf8.contains(where: ":\r\n".utf8.contains)
    }
    guard let password = secret("password_env", object), let user else { return nil }
    return .basic(user: user, password: password)
  }

  /// Returns the value of the variable that a member names; `nil` after a fault.
  private static func secret(_ key: String, _ object: SettingObject) -> String? {
    guard let value = object.member(key), let variable = value.variable() else { return nil }
    guard HeaderFields.fault(of: HeaderField("Authorization", variable.value)) == nil else {
      value.refuse("names a variable whose value has a line end, or a character that credentials cannot have")
      return nil
    }
    value.change(to: .string(variable.name))
    return variable.value
  }

  private static func forbid(_ key: String, _ other: String, _ object: SettingObject) {
    object.forbid(
      key,
      "does not belong in the file; put the secret into an environment variable, and name the variable in \(other)"
    )
  }
}
