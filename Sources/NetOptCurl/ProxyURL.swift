/// A proxy's URL.
enum ProxyURL {
  /// The URL as a message may show it: without user name and password.
  static func shown(_ url: String) -> String {
    guard let at = url.lastIndex(of: "@") else { return url }
    let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
    return String(url[..<start] + url[url.index(after: at)...])
  }
}
