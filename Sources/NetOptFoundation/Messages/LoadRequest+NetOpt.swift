import Foundation
import FoundationNetworking
import NetOpt

extension LoadRequest {
  /// Fields that netopt sets itself, and refuses in requests.
  private static let connectionFields: Set<String> = [
    "connection", "content-length", "http2-settings", "keep-alive", "proxy-connection", "te",
    "transfer-encoding", "upgrade",
  ]

  /// Makes the request that netopt sends.
  ///
  /// - Parameters:
  ///   - configuration: the configuration of the session, which has further fields.
  ///   - options: the options of the client's requests.
  /// - Throws: `URLError`, or `NetOptError` with the code `invalidURL`.
  func netOptRequest(
    in configuration: URLSessionConfiguration, _ options: RequestOptions
  ) throws -> NetOptRequest {
    guard let host = url.host, !host.isEmpty else {
      throw URLError(.badURL, userInfo: [NSLocalizedDescriptionKey: "an HTTP URL must have a host"])
    }
    // Foundation looks up such names, and finds nothing.
    if (try? HTTPURL("http://\(host.contains(":") ? "[\(host)]" : host)")) == nil {
      throw URLError(.cannotFindHost)
    }
    var fields = fields(in: configuration)
    let length = fields["Content-Length"].flatMap { Int64($0) }
    fields.removeAll { Self.connectionFields.contains($0.name.lowercased()) }
    let authority = url.port.map { "\(host):\($0)" } ?? host
    if let field = fields["Host"], [authority, host].contains(field) { fields["Host"] = nil }
    let target = try withoutUser(&fields)
    var options = options
    options.maxRedirects = 0
    switch urlRequest.cachePolicy {
    case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData, .reloadRevalidatingCacheData:
      options.cache = .off
    default: break
    }
    return NetOptRequest(
      NetOptRequest.Method(rawValue: urlRequest.httpMethod ?? "GET"), target, headers: fields,
      body: try body.requestBody(length: length), options: options)
  }

  /// Returns the fields of the request, and those that Foundation adds.
  private func fields(in configuration: URLSessionConfiguration) -> HeaderFields {
    var fields = HeaderFields()
    // Sorted, because dictionaries have another order in each process.
    for (name, value) in (urlRequest.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
      fields.append(HeaderField(name, value))
    }
    let further = configuration.httpAdditionalHeaders as? [String: String] ?? [:]
    for (name, value) in further.sorted(by: { $0.key < $1.key }) where !fields.contains(name: name) {
      let isForFirst = (Self.credentialFields + ["Host"]).contains { HeaderFields.equal(name, $0) }
      if !hasLeftOrigin || !isForFirst { fields.append(HeaderField(name, value)) }
    }
    if !fields.contains(name: "Accept") { fields.append(HeaderField("Accept", "*/*")) }
    if !fields.contains(name: "Accept-Language"), let language = Locale.current.language.languageCode {
      fields.append(HeaderField("Accept-Language", language.identifier))
    }
    let isForm: Bool
    if case .stream = body {
      isForm = true
    } else {
      isForm = !(urlRequest.httpBody ?? Data()).isEmpty && !body.isNone
    }
    if urlRequest.httpMethod == "POST", isForm, !fields.contains(name: "Content-Type") {
      fields.append(HeaderField("Content-Type", "application/x-www-form-urlencoded"))
    }
    return fields
  }

  /// The URL that netopt requests; `nil` if netopt refuses it.
  var netOptURL: HTTPURL? {
    var fields = HeaderFields()
    return try? withoutUser(&fields)
  }

  /// Returns the URL without a user name and password, which become a field, as with Foundation.
  private func withoutUser(_ fields: inout HeaderFields) throws -> HTTPURL {
    guard let user = url.user, var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
      return try Self.withoutDots(url.absoluteString)
    }
    if !fields.contains(name: "Authorization") {
      let text = "\(user.removingPercentEncoding ?? user):\(components.password ?? "")"
      fields.append(HeaderField("Authorization", "Basic \(Data(text.utf8).base64EncodedString())"))
    }
    components.user = nil
    components.password = nil
    return try Self.withoutDots(components.string ?? url.absoluteString)
  }

  /// Parses a URL, and removes the segments "." and ".." of its path, as Foundation does when it sends it.
  private static func withoutDots(_ text: String) throws -> HTTPURL {
    let url = try HTTPURL(text)
    return url.path.contains("/.") ? try url.resolving(text) : url
  }
}
