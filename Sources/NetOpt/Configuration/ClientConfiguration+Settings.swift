import NetOptCore
import NetOptEngine
import NetOptRouting

// The settings as members of the configuration file. A setting that is added to `ClientConfiguration` is
// added here, to docs/schemas/config.schema.json, to docs/configuration.md and to `SettingSamples` of the
// tests.

extension ClientConfiguration {
  /// Reads the members of the outermost object.
  mutating func read(_ object: SettingObject) {
    readList(object)
    object.object("list_updates") { listUpdates.read($0) }
    if let value = object.member("trusted_keys") { trustedKeys = Self.keys(value) ?? [] }
    object.flag("allow_private_addresses", &allowPrivateAddresses)
    object.object("routing") { routing.read($0) }
    object.object("probing") { probing.read($0) }
    readHistory(object)
    object.object("dns") { dns.read($0) }
    object.object("tls") { tls.read($0) }
    object.object("connections") { connections.read($0) }
    readProxy(object)
    object.text("user_agent", &userAgent, "a text without line ends", mayBeEmpty: true) {
      HeaderFields.fault(of: HeaderField("User-Agent", $0)) == nil
    }
    readCache(object)
    // After the cache, whose settings decide what fields carry credentials.
    object.object("defaults") { defaults.read($0, cache) }
    readAuthorization(object)
    var hosts: [String] = []
    object.texts("cookie_hosts", &hosts, { $0.host() }, "host names")
    cookieHosts = Set(hosts)
    object.object("signing") { signing = Signing(reading: $0) }
    object.object("telemetry") { telemetry = Telemetry(reading: $0) }
  }

  private mutating func readList(_ object: SettingObject) {
    guard let value = object.member("list") else { return }
    guard value.isText else {
      guard let entry = SettingObject(value, "\"none\", \"built-in\" or {\"file\": PATH}") else { return }
      var file: String?
      entry.require("file")
      entry.file("file", &file)
      entry.finish()
      if let file { list = .file(file) }
      return
    }
    guard let word = value.choice(["none", "built-in"], rest: " or {\"file\": PATH}") else { return }
    list = word == "none" ? .none : .builtIn
    if word != "none" { value.change(to: .string(word)) }
  }

  private mutating func readHistory(_ object: SettingObject) {
    guard let value = object.member("ranking_history") else { return }
    guard value.isText else {
      guard let entry = SettingObject(value, "\"state-directory\", \"none\" or {\"directory\": PATH}") else {
        return
      }
      var directory: String?
      entry.require("directory")
      entry.file("directory", &directory)
      entry.finish()
      if let directory { rankingHistory = .directory(directory) }
      return
    }
    guard let word = value.choice(["state-directory", "none"], rest: " or {\"directory\": PATH}") else {
      return
    }
    rankingHistory = word == "none" ? .none : .stateDirectory
    if word == "none" { value.change(to: .string(word)) }
  }

  /// Reads `proxy` or `proxy_env`. A URL in the file must have a scheme, so that a misspelt word is not the
  /// name of a proxy, and no credentials.
  private mutating func readProxy(_ object: SettingObject) {
    object.exclude("proxy_env", "proxy")
    if let value = object.member("proxy_env"), let variable = value.variable() {
      if let fault = ProxyURL.fault(of: variable.value) {
        value.refuse("names a variable whose URL cannot be used: \(fault)")
      } else {
        proxy = .url(variable.value)
        value.change(to: .string(variable.name))
      }
    }
    let allowed = "\"environment\", \"none\" or the URL of a proxy with its scheme, such as http://proxy:3128"
    guard let value = object.member("proxy"), let text = value.text(allowed) else { return }
    switch text {
    case "environment": proxy = .environment
    case "none": proxy = .none
    default:
      guard text.utf8.firstRange(ofBytes: "://") != nil else { return value.refuse("is not \(allowed)") }
      if let fault = ProxyURL.fault(of: text) { return value.refuse("cannot be used: \(fault)") }
      guard ProxyURL.credentials(of: text) == nil else {
        return value.refuse(
          "has a user name or password; put the URL into an environment variable, and name the variable in proxy_env"
        )
      }
      proxy = .url(text)
    }
    if proxy != .environment { value.change(to: .string(text)) }
  }

  /// Reads the keys of `trusted_keys`: each a minisign public key, or the path of a file with one.
  private static func keys(_ value: SettingValue) -> [MinisignPublicKey]? {
    var keys: [MinisignPublicKey] = []
    let allowed = "minisign public keys or paths of files with one"
    let texts = SettingObject.texts(value, allowed) { element in
      guard let text = element.text("a minisign public key or the path of a file with one") else {
        return nil
      }
      // The variable takes precedence, so the files need not exist.
      if element.report.isSet("NETOPT_TRUSTED_KEYS") { return text }
      do throws(NetOptError) { keys.append(try key(text, element.report.resolved)) } catch {
        element.refuse(error.message)
        return nil
      }
      return text
    }
    guard let texts else { return nil }
    if !texts.isEmpty { value.change(to: .array(keys.map { .string($0.description) })) }
    return keys
  }

  /// Returns a trusted key.
  ///
  /// - Parameters:
  ///   - text: the key, or the path of its file.
  ///   - resolve: makes a path from the text.
  static func key(_ text: String, _ resolve: (String) -> String) throws(NetOptError) -> MinisignPublicKey {
    if let key = try? MinisignPublicKey(text) { return key }
    guard !FileBytes.isContent(text) else {
      throw NetOptError(
        .invalidConfiguration, phase: .list,
        "is neither a minisign public key, which begins with RW, nor the path of a file")
    }
    do throws(NetOptError) { return try MinisignPublicKey(file: resolve(text)) } catch {
      guard error.code == .unreadableFile else { throw error }
      throw NetOptError(
        .invalidConfiguration, phase: .list,
        "is neither a minisign public key, which begins with RW, nor the path of a readable file: \(error.message)"
      )
    }
  }
}

extension ClientConfiguration.ListUpdates {
  fileprivate mutating func read(_ object: SettingObject) {
    object.flag("refresh", &refresh)
    object.flag("keep_copy", &keepCopy)
    object.flag("watch_file", &watchFile)
    object.file("state_directory", &stateDirectory)
  }
}

extension RoutingConfiguration {
  fileprivate mutating func read(_ object: SettingObject) {
    object.text("region", &region)
    object.text("isp", &isp)
    object.word("policy", &policy)
  }
}

extension ClientConfiguration.Probing {
  fileprivate mutating func read(_ object: SettingObject) {
    object.flag("at_start", &atStart)
    object.flag("in_background", &inBackground)
    object.word("method", &method)
    object.duration("budget_ms", &budget, Self.budgets)
    object.count("concurrency", &concurrency, Self.concurrencies)
    object.duration("first_request_wait_ms", &firstRequestWait, Self.waits)
  }
}

extension ClientConfiguration.DNS {
  /// The permitted forms of a name server, in words.
  static let serverForms = "addresses of name servers: 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353"

  fileprivate mutating func read(_ object: SettingObject) {
    let form = "an address with or without a port: 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353"
    let read = { (value: SettingValue) -> String? in
      guard let text = value.text(form) else { return nil }
      if ResolverConfiguration.isServer(text) { return text }
      value.refuse("is not \(form)")
      return nil
    }
    object.texts("servers", &servers, read, Self.serverForms)
    object.duration("timeout_ms", &timeout, ResolverConfiguration.timeouts)
    object.count("tries", &tries, ResolverConfiguration.attempts)
  }
}

extension ClientConfiguration.Connections {
  fileprivate mutating func read(_ object: SettingObject) {
    object.count("per_endpoint", &perEndpoint, CurlConfiguration.connectionCounts)
    object.count("total", &total, CurlConfiguration.connectionCounts)
    object.count("idle", &idle, CurlConfiguration.idleCounts)
    object.duration("idle_age_s", &idleAge, CurlConfiguration.ages)
    object.duration("lifetime_s", &lifetime, CurlConfiguration.ages)
    object.count("body_buffer_bytes", &bodyBuffer, CurlConfiguration.bodyBuffers)
  }
}
