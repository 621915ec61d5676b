import NetOpt
import NetOptCore
import NetOptRouting

/// The options of commands that make requests: where addresses come from, how connections are secured, and
/// time limits.
enum ClientOptions {
  static let list = Option(
    "iplist", takes: .required("FILE"), "the IP list; default: the list compiled into the program",
    environment: "NETOPT_IPLIST")
  static let trustedKey = Option(
    "trusted-key", takes: .required("KEY"),
    "accept only IP lists that this minisign public key has signed; KEY is the key or a file with it; may be repeated",
    environment: "NETOPT_TRUSTED_KEYS")
  static let allowPrivate = Option(
    "allow-private", "accept private and loopback addresses in the IP list")
  static let dnsServers = Option(
    "dns-servers", takes: .required("A,B"), "DNS servers, as ADDRESS or ADDRESS:PORT; default: the system's",
    environment: "NETOPT_DNS_SERVERS")
  static let noDirect = Option("no-direct", "ignore the IP list and use only addresses from DNS")
  static let caFile = Option(
    "cacert", takes: .required("FILE"), "trust the CA certificates in FILE (PEM) instead of the system's",
    environment: "NETOPT_CACERT")
  static let insecure = Option(
    "insecure", short: "k", "do not verify the server's certificate; the output reports this")
  static let policy = Option(
    "policy", takes: .required("NAME"),
    "how to choose an address of the IP list: fastest (default), balanced (by speed and load), pinned (keep one while it works)",
    environment: "NETOPT_POLICY")
  static let ipv4 = Option("ipv4", short: "4", "use only IPv4 addresses")
  static let ipv6 = Option("ipv6", short: "6", "use only IPv6 addresses")
  static let http1 = Option("http1.1", "use HTTP/1.1")
  static let http2 = Option("http2", "use HTTP/2 or fail; default: HTTP/2 when the server offers it")
  static let maxTime = Option(
    "max-time", short: "m", takes: .required("SECONDS"),
    "time limit for a request, including the body, at most 1 year; 0 for no limit; default: 60")
  static let connectTimeout = Option(
    "connect-timeout", takes: .required("SECONDS"),
    "time limit for a connection to one address, including TLS, at most 1 year; 0 for the default: 10")

  /// The options about addresses, as a group of the help text.
  static let routing = OptionGroup(
    "Routing", [list, trustedKey, allowPrivate, dnsServers, noDirect, policy, ipv4, ipv6])
  /// The options about connections, as a group of the help text.
  static let connection = OptionGroup(
    "Connection", [caFile, insecure, http1, http2, maxTime, connectTimeout])

  /// Environment variables that have no option of the same meaning, with their descriptions for the help text
  /// of the program.
  static let variables = [
    ("NETOPT_REGION", "your region; netopt tries its endpoints first"),
    ("NETOPT_ISP", "your network (ISP); netopt tries its endpoints first"),
    (TLSOptions.passphrase, "the passphrase of the private key of --cert"),
    (
      "SSLKEYLOGFILE",
      "file to which the secrets of TLS connections are appended, for programs like Wireshark"
    ),
    ("XDG_STATE_HOME", "directory where get saves the ranking for the next run; default: ~/.local/state"),
  ]

  /// Returns the client configuration from the arguments and the environment. An option that the command does
  /// not declare takes its value from its environment variable, if it has one. Otherwise the setting has its
  /// default.
  ///
  /// - Throws: `UsageError` for an invalid value; `NetOptError` for a key file without a key.
  static func configuration(
    _ arguments: Arguments, in context: CommandContext
  ) throws -> ClientConfiguration {
    var configuration = ClientConfiguration()
    configuration.list = arguments.value(of: list).map { .file($0) } ?? .builtIn
    configuration.trustedKeys = try trustedKeys(arguments)
    // Most commands end too early for a refresh of the list. A command uses the list that it starts with.
    // `iplist update` fetches newer lists.
    configuration.listUpdates.refresh = false
    configuration.listUpdates.stateDirectory = ListStore.directory(in: context.environment)
    configuration.allowPrivateAddresses = arguments.has(allowPrivate)
    configuration.routing = RoutingConfiguration(environment: context.environment)
    if let text = arguments.value(of: policy) {
      guard let policy = SelectionPolicy(rawValue: text) else {
        let known = SelectionPolicy.allCases.map(\.rawValue).joined(separator: ", ")
        throw UsageError("\(arguments.name(of: Self.policy)) takes one of \(known), not \"\(text)\"")
      }
      configuration.routing.policy = policy
    }
    // With `--no-direct`, no request uses the list's endpoints, so the client does not probe them. In any
    // case, a command contacts only the hosts that its arguments name.
    configuration.probing.atStart = !arguments.has(noDirect)
    configuration.probing.includesUnusedHosts = false
    if let text = arguments.value(of: dnsServers) {
      configuration.dns.servers = try servers(text, arguments.name(of: dnsServers))
    }
    configuration.tls = try TLSOptions.settings(arguments, in: context)
    return configuration
  }

  /// Returns the trusted keys: the values of `--trusted-key`, or else the values in the environment variable
  /// of this option, which are separated by commas. Each value is a key or the path of a key file.
  ///
  /// - Throws: `UsageError` for a value that is neither a key nor a readable file, and for a variable without
  ///   a key; `NetOptError` for a file without a key.
  static func trustedKeys(_ arguments: Arguments) throws -> [MinisignPublicKey] {
    var texts = arguments.values(of: trustedKey)
    if texts.isEmpty, let variable = arguments.value(of: trustedKey) {
      texts = variable.split(separator: ",").map { word in
        String(word.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
      }
      // Without keys, the client would verify no signature, although a user who sets the variable wants that.
      if texts.isEmpty {
        throw UsageError(
          "\(arguments.name(of: trustedKey)) contains no key; give a minisign public key or the name of a file with one"
        )
      }
    }
    return try texts.map { text in
      if let key = try? MinisignPublicKey(text) { return key }
      do throws(NetOptError) { return try MinisignPublicKey(file: text) } catch {
        if error.code != .unreadableFile { throw error }
        throw UsageError(
          "\(arguments.name(of: trustedKey)) takes a minisign public key, which begins with RW, or the name of a file with one; \(error.message)"
        )
      }
    }
  }

  /// Returns the request options from the arguments.
  static func requestOptions(_ arguments: Arguments) throws(UsageError) -> RequestOptions {
    var options = RequestOptions()
    if let limit = try arguments.seconds(maxTime) { options.timeout = limit == .zero ? nil : limit }
    if let limit = try arguments.seconds(connectTimeout), limit > .zero { options.connectTimeout = limit }
    if arguments.has(insecure) { options.verification = .none }
    if arguments.has(noDirect) { options.routing = .dns }
    if let family = arguments.last(of: [ipv4, ipv6]) { options.family = family == ipv4 ? .v4 : .v6 }
    if let version = arguments.last(of: [http1, http2]) {
      options.version = version == http1 ? .http1 : .http2
    }
    return options
  }

  /// Splits a list of DNS servers at its commas and checks each. A server is an IP address with or without a
  /// port. An IPv6 address with a port must be in brackets.
  ///
  /// - Parameter name: the name of the option or variable, for the message.
  private static func servers(_ text: String, _ name: String) throws(UsageError) -> [String] {
    let servers = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    for server in servers where !isServer(server) {
      throw UsageError(
        "\(name) takes addresses with or without a port, as 127.0.0.1:5353,::1,[::1]:5353; not \"\(HTTPURL.shown(given: server))\""
      )
    }
    return servers
  }

  /// Whether a text is an IP address with or without a port from 1 to 65535.
  private static func isServer(_ text: String) -> Bool {
    if IPAddress(text) != nil { return true }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
      return false
    }
    let host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      return port > 0 && IPAddress(host.dropFirst().dropLast())?.family == .v6
    }
    return port > 0 && IPAddress(host)?.family == .v4
  }
}
