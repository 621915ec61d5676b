import NetOptCore
import NetOptEngine

/// Selects the proxy for an origin, from the configuration or from environment variables.
struct ProxyChoice: Sendable {
  private let setting: ClientConfiguration.Proxy
  private let environment: ProxyEnvironment

  /// - Parameter environment: the environment variables of the process.
  init(
    _ setting: ClientConfiguration.Proxy,
    _ environment: [String: String] = ProcessEnvironment.variables
  ) {
    self.setting = setting
    self.environment = ProxyEnvironment(environment)
  }

  /// The URL of the proxy for an origin; `nil` for no proxy.
  func proxy(for origin: Origin) -> String? {
    switch setting {
    case .environment: environment.proxy(for: origin)
    case .none: nil
    case .url(let url): url
    }
  }

  /// The user name and password for the proxy that answers requests to an origin, as they are in the URL of
  /// the proxy. `nil` without a proxy, for a SOCKS proxy, and for an `https` origin: in these cases the
  /// origin itself answers.
  func credentials(for origin: Origin) -> String? {
    guard origin.scheme == .http, let proxy = proxy(for: origin), !ProxyURL.isSOCKS(proxy) else { return nil }
    return ProxyURL.credentials(of: proxy)
  }
}

/// The proxy that environment variables name, with the rules of curl(1): `http_proxy`, `https_proxy`,
/// `all_proxy`, and `no_proxy` for exceptions. `HTTP_PROXY` in upper case is ignored: a web server passes the
/// `Proxy` field of a request to CGI programs in this variable.
struct ProxyEnvironment: Sendable, Equatable {
  /// The URL of the proxy for `http` origins; `nil` for no proxy.
  private let http: String?
  /// The URL of the proxy for `https` origins; `nil` for no proxy.
  private let https: String?
  /// The entries of `no_proxy` in lower case.
  private let exceptions: [String]

  /// Reads the variables. A variable in lower case takes precedence over the one in upper case, even when it
  /// is empty. When the variable of a scheme is empty or not set, `all_proxy` applies to the scheme.
  init(_ environment: [String: String]) {
    /// The value of the first of these variables that is set; `nil` when it is empty or none is set.
    func value(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first.flatMap { $0.isEmpty ? nil : $0 }
    }
    let all = value("all_proxy", "ALL_PROXY")
    http = value("http_proxy") ?? all
    https = value("https_proxy", "HTTPS_PROXY") ?? all
    exceptions = (value("no_proxy", "NO_PROXY") ?? "").split { $0 == "," || $0 == " " }
      .map { $0.loweredASCII }
  }

  /// The URL of the proxy for an origin; `nil` for no proxy.
  func proxy(for origin: Origin) -> String? {
    guard let proxy = origin.scheme == .http ? http : https else { return nil }
    return exceptions.contains { matches($0, origin) } ? nil : proxy
  }

  /// Whether an entry of `no_proxy` covers an origin. An entry is "*", a name (which covers its subdomains
  /// too), an address, or a block of addresses.
  private func matches(_ exception: String, _ origin: Origin) -> Bool {
    if exception == "*" { return true }
    if let address = origin.address {
      if let slash = exception.firstIndex(of: "/") {
        guard let network = IPAddress(exception[..<slash]),
          let length = Int(exception[exception.index(after: slash)...])
        else { return false }
        return address.isIn(network, prefixLength: length)
      }
      let bare = exception.hasPrefix("[") ? String(exception.dropFirst().dropLast()) : exception
      return IPAddress(bare) == address
    }
    let name = Origin.normalized(host: exception.hasPrefix(".") ? String(exception.dropFirst()) : exception)
    return origin.host == name || origin.host.hasSuffix("." + name)
  }
}

extension IPAddress {
  /// Whether the first `prefixLength` bits of the address equal those of the network's address.
  fileprivate func isIn(_ network: IPAddress, prefixLength: Int) -> Bool {
    let bytes = bytes
    let other = network.bytes
    guard bytes.count == other.count, (0...(bytes.count * 8)).contains(prefixLength) else { return false }
    return (0..<prefixLength).allSatisfy { bit in
      let mask = UInt8(0x80) >> (bit % 8)
      return bytes[bit / 8] & mask == other[bit / 8] & mask
    }
  }
}
