import FoundationEssentials
package import NetOptCore
import NetOptRouting

/// Fetches a list from its URL, and its signature from the same URL with `.minisig` at the end of the path.
package struct ListFetch: Sendable {
  /// What the server answered.
  package enum Answer: Sendable {
    /// The server still has the list whose entity tag was sent (304).
    case unchanged
    /// The server's list and its signature. Neither has been checked yet.
    case copy(ListStore.Copy)
  }

  /// Why a fetch failed, and how long the server asks the client to wait.
  package struct Failure: Error, Sendable {
    /// The reason for the failure.
    package let error: NetOptError
    /// How long the server asks the client to wait before the next fetch (`Retry-After`: RFC 9110, section
    /// 10.2.3). `nil` when the server does not ask for a wait.
    package let retryAfter: Duration?
  }

  /// Sends a request, and returns its response.
  private let perform: @Sendable (NetOptRequest) async throws(NetOptError) -> NetOptResponse
  /// Whether `list(from:unless:)` fetches the signature too.
  private let isSigned: Bool

  /// Makes a fetch.
  ///
  /// - Parameters:
  ///   - isSigned: whether to fetch the signature too.
  ///   - perform: sends a request, and returns its response.
  package init(
    isSigned: Bool, perform: @escaping @Sendable (NetOptRequest) async throws(NetOptError) -> NetOptResponse
  ) {
    self.isSigned = isSigned
    self.perform = perform
  }

  /// Fetches a list.
  ///
  /// - Parameters:
  ///   - url: the URL of the list.
  ///   - tag: the entity tag of the list that the client already has from this URL; `nil` when the client has
  ///     no list from there, or no tag for it. With a tag, the result may be `unchanged`.
  package func list(from url: HTTPURL, unless tag: String?) async throws(Failure) -> Answer {
    var fields: HeaderFields = ["Accept": "application/json"]
    if let tag { fields.append(HeaderField("If-None-Match", tag)) }
    let response = try await answer(url, fields)
    if response.status == 304, tag != nil { return .unchanged }
    let list = try await body(of: response, from: url, upTo: EndpointList.maximumBytes)
    var signature: [UInt8]?
    if isSigned {
      let url = Self.signature(of: url)
      signature = try await body(of: answer(url, [:]), from: url, upTo: MinisignText.maximumBytes)
    }
    return .copy(
      ListStore.Copy(
        source: url.description, tag: Self.tag(of: response), list: list, signature: signature))
  }

  /// The URL of the signature of the list at `url`: it has `.minisig` at the end of the path, before the
  /// query.
  static func signature(of url: HTTPURL) -> HTTPURL {
    let query = url.query.map { "?" + $0 } ?? ""
    return HTTPURL(origin: url.origin, target: ListReader.signatureFile(of: String(url.path)) + query)
  }

  /// Sends a request, with a time limit of 30 s and at most 5 redirects.
  private func answer(_ url: HTTPURL, _ fields: HeaderFields) async throws(Failure) -> NetOptResponse {
    var request = NetOptRequest(.get, url, headers: fields)
    request.options.timeout = .seconds(30)
    request.options.maxRedirects = 5
    do throws(NetOptError) {
      return try await perform(request)
    } catch {
      throw Failure(error: Self.error(url, error.message, error), retryAfter: nil)
    }
  }

  /// Reads the body of a response.
  ///
  /// - Throws: `Failure` when the status is not 200, when the response is a web page, and when the body is
  ///   larger than `limit` bytes.
  private func body(
    of response: NetOptResponse, from url: HTTPURL, upTo limit: Int
  ) async throws(Failure) -> [UInt8] {
    guard response.status == 200 else {
      let retryAfter = RetryAfter.delay(response.head) { Date() }
      throw Failure(
        error: Self.error(url, "the server answered with status \(response.status)", nil),
        retryAfter: retryAfter)
    }
    // A web page comes from a captive portal, or from a server without this file.
    if let type = response.head.first("Content-Type"), type.loweredASCII.hasPrefix("text/html") {
      throw Failure(
        error: Self.error(url, "the server answered with a web page (\(type)), not with a file", nil),
        retryAfter: nil)
    }
    do throws(NetOptError) {
      return try await response.body.collect(upTo: limit)
    } catch {
      let reason = error.code == .bodyTooLarge ? "it is larger than \(limit) bytes" : error.message
      throw Failure(error: Self.error(url, reason, error), retryAfter: nil)
    }
  }

  /// Makes the error of a fetch from the error that caused it, which gives the code and the details. `cause`
  /// is `nil` when the fetch failed because of the response itself.
  private static func error(_ url: HTTPURL, _ reason: String, _ cause: NetOptError?) -> NetOptError {
    NetOptError(
      cause?.code ?? .receiveFailed, phase: .list, "\(url.shown) could not be fetched: \(reason)",
      endpoint: cause?.endpoint, underlying: cause?.underlying, isRetryable: cause?.isRetryable ?? true,
      route: cause?.route)
  }

  /// The entity tag of a response, if netopt can send it back later. `nil` when the response has none, when
  /// the tag is longer than 1,024 bytes, or when it contains anything but visible ASCII characters.
  private static func tag(of response: NetOptResponse) -> String? {
    guard let tag = response.head.first("ETag"), tag.utf8.count <= 1024,
      tag.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
    else { return nil }
    return tag
  }
}
