/// A proxy's URL.
enum ProxyURL {
  /// Whether the connection to the proxy speaks TLS.
  static func isSecure(_ url: String) -> Bool { url.prefix(6).lowercased() == "https:" }

  /// The URL as a message may show it: without user name and password.
  static func shown(_ url: String) -> String {
    guard let at = url.lastIndex(of: "@") else { return url }
    let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
    return String(url[..<start] + url[url.index(after: at)...])
  }
}
