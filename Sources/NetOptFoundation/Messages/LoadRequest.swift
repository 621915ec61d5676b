import Foundation
import FoundationNetworking
import NetOpt

/// One request of a load: the first one, or one that follows a redirect or a request for credentials.
struct LoadRequest: Sendable {
  /// The request in Foundation's form, as delegates see it.
  private(set) var urlRequest: URLRequest
  private(set) var url: URL
  var body: UploadBody
  /// The value of `Cookie` that Foundation took from the cookie storage; `nil` if the program set it.
  private var storedCookies: String?
  /// Whether a redirect has led to another origin, which must not get the credentials of the configuration.
  private(set) var hasLeftOrigin = false
  /// The fields that are meant for one origin.
  static let credentialFields = ["Authorization", "Cookie", "Proxy-Authorization"]

  init(_ request: URLRequest, to url: URL, body: UploadBody, in configuration: URLSessionConfiguration) {
    urlRequest = request
    self.url = url
    self.body = body
    let stored = configuration.cookieField(for: url)
    if stored == request.value(forHTTPHeaderField: "Cookie") { storedCookies = stored }
  }

  // MARK: - Requests that follow

  /// Returns the target of a redirect; `nil` if the response is none.
  ///
  /// - Throws: `URLError` with the code `unsupportedURL` if the target is neither http nor https.
  func redirectTarget(of response: NetOptResponse) throws -> URL? {
    guard [301, 302, 303, 307, 308].contains(response.status),
      let location = response.headers.values(of: "Location").first,
      let target = URL(string: location, relativeTo: url)?.absoluteURL
    else { return nil }
    guard NetOptURLProtocol.canInit(with: URLRequest(url: target)) else { throw URLError(.unsupportedURL) }
    return target
  }

  /// Returns the request that follows a redirect. Like Foundation on Apple's systems, and unlike on Linux, it
  /// has the body again if its method stays, and no credentials for another origin.
  func redirected(
    _ status: Int, to target: URL, in configuration: URLSessionConfiguration
  ) -> LoadRequest {
    var next = self
    next.urlRequest.url = target
    next.url = target
    let method = urlRequest.httpMethod ?? "GET"
    // RFC 9110, sections 15.4.2 to 15.4.4.
    if status == 303 ? method != "HEAD" : status < 303 && method == "POST" {
      next.urlRequest.httpMethod = "GET"
      next.urlRequest.httpBody = nil
      next.urlRequest.httpBodyStream = nil
      next.body = .none
      for name in ["Content-Type", "Content-Encoding", "Content-Language", "Content-Length"] {
        next.urlRequest.setValue(nil, forHTTPHeaderField: name)
      }
    }
    if url.originText != target.originText {
      next.hasLeftOrigin = true
      for name in Self.credentialFields + ["Host"] {
        next.urlRequest.setValue(nil, forHTTPHeaderField: name)
      }
    } else if storedCookies != nil {
      next.urlRequest.setValue(nil, forHTTPHeaderField: "Cookie")
    }
    next.storedCookies = configuration.cookieField(for: target)
    if let cookies = next.storedCookies { next.urlRequest.setValue(cookies, forHTTPHeaderField: "Cookie") }
    return next
  }

  /// Replaces the request by the one that a delegate has chosen.
  ///
  /// - Throws: `URLError` if it has no URL, or one that is neither http nor https.
  mutating func replace(by chosen: URLRequest) throws {
    guard let url = chosen.url else { throw URLError(.badURL) }
    guard NetOptURLProtocol.canInit(with: chosen) else { throw URLError(.unsupportedURL) }
    if chosen.httpMethod == "GET" || chosen.httpMethod == "HEAD" {
      body = .none
    } else if let data = chosen.httpBody, data != urlRequest.httpBody {
      body = .bytes(Array(data))
    }
    urlRequest = chosen
    self.url = url
  }

  /// Returns the request with credentials (RFC 7617).
  func authorized(by credential: URLCredential) -> LoadRequest {
    var next = self
    let text = "\(credential.user ?? ""):\(credential.password ?? "")"
    next.urlRequest.setValue(
      "Basic \(Data(text.utf8).base64EncodedString())", forHTTPHeaderField: "Authorization")
    return next
  }
}

extension URL {
  /// The scheme, the host and the port, with the scheme's default port.
  fileprivate var originText: String {
    let scheme = scheme?.lowercased() ?? ""
    return "\(scheme)://\(host?.lowercased() ?? ""):\(port ?? (scheme == "https" ? 443 : 80))"
  }
}

extension URLRequest {
  /// The time without progress after which the request fails, in seconds. A limit that the program has set to
  /// the default of 60 s looks like none, so the limit of the configuration applies to it.
  func idleLimit(in configuration: URLSessionConfiguration) -> TimeInterval {
    timeoutInterval == 60 ? configuration.timeoutIntervalForRequest : timeoutInterval
  }
}
