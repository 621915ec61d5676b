public import FoundationEssentials

/// The content of a response as text or as a value.
extension NetOptResponse {
  /// Whether the status is 2xx.
  public var isSuccess: Bool { 200..<300 ~= status }

  /// Reads the body and returns it as text. Bytes that are invalid in UTF-8 become U+FFFD, and a byte order
  /// mark is removed.
  ///
  /// - Parameter limit: the maximum number of bytes. Default: 16 MiB.
  /// - Throws: `decodeFailed` if `Content-Type` names a charset other than UTF-8, US-ASCII or ISO-8859-1;
  ///   the errors of `ResponseBody.collect`.
  public func text(upTo limit: Int = 16 << 20) async throws(NetOptError) -> String {
    let charset = MediaType.charset(of: headers["Content-Type"] ?? "")
    switch charset {
    case nil, "utf-8", "utf8", "us-ascii", "ascii": break
    case "iso-8859-1", "latin1":
      let bytes = try await body.collect(upTo: limit)
      return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    case .some(let other):
      throw NetOptError(
        .decodeFailed, phase: .decode,
        "the response of \(url.brief) has the charset \(other), which netopt does not read as text; read its bytes with body.collect(upTo:)",
        endpoint: remote, route: route)
    }
    let bytes = try await body.collect(upTo: limit)
    return String(decoding: bytes.dropFirst(bytes.starts(with: Self.byteOrderMark) ? 3 : 0), as: UTF8.self)
  }

  /// Reads the body and returns it as Foundation's `Data`.
  ///
  /// - Parameter limit: the maximum number of bytes. Default: 16 MiB.
  /// - Throws: the errors of `ResponseBody.collect`.
  public func data(upTo limit: Int = 16 << 20) async throws(NetOptError) -> Data {
    Data(try await body.collect(upTo: limit))
  }

  /// The byte order mark in UTF-8.
  static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

  /// Reads the body and decodes it from JSON (RFC 8259). Ignores the status: call `requireSuccess` first if
  /// other responses than 2xx have no such value.
  ///
  /// ```swift
  /// let user = try await client.execute(request).requireSuccess().decode(User.self)
  /// ```
  ///
  /// - Parameters:
  ///   - type: the type of the value.
  ///   - decoder: the decoder. Default: `JSONDecoder()`.
  ///   - limit: the maximum number of bytes. Default: 16 MiB.
  /// - Throws: `decodeFailed` if the body is not JSON of this type; the message names the place and no value.
  ///   Also for a string with a run of more than 30 combining marks or 300 flags: Swift compares such strings
  ///   in quadratic time. The errors of `ResponseBody.collect`.
  public func decode<Value: Decodable>(
    _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder(), upTo limit: Int = 16 << 20
  ) async throws(NetOptError) -> Value {
    let bytes = try await body.collect(upTo: limit)
    do throws(JSONFault) { return try JSONFault.decode(type, decoder, bytes) } catch {
      throw NetOptError(
        .decodeFailed, phase: .decode,
        "the response of \(url.brief) (status \(status), \(bytes.count) bytes) is not the expected JSON: \(error.reason)",
        endpoint: remote, route: route)
    }
  }

  /// The number of bytes of the body that the error of `requireSuccess` keeps: 64 KiB.
  private static let keptBytes = 64 << 10

  /// Checks that the status is 2xx.
  ///
  /// - Returns: the response itself.
  /// - Throws: `unexpectedStatus` for any other status. The error has the `status` and the first 64 KiB of
  ///   the body (`responseBody`), fewer if reading it fails. The rest of the body is not read. `cancelled` if
  ///   the task is cancelled while the body is read.
  @discardableResult
  public func requireSuccess() async throws(NetOptError) -> NetOptResponse {
    if isSuccess { return self }
    var kept: [UInt8] = []
    var chunks = body.makeAsyncIterator()
    do throws(NetOptError) {
      while kept.count < Self.keptBytes, let chunk = try await chunks.next() {
        kept += chunk.prefix(Self.keptBytes - kept.count)
      }
    } catch {
      if error.code == .cancelled { throw error }
    }
    throw NetOptError(self, body: kept)
  }
}

extension NetOptError {
  /// Decodes `responseBody` from JSON (RFC 8259), such as the problem details of RFC 9457. `requireSuccess`
  /// throws errors with such a body.
  ///
  /// - Parameters:
  ///   - type: the type of the value.
  ///   - decoder: the decoder. Default: `JSONDecoder()`.
  /// - Throws: `decodeFailed` if the error has no body, or if the body, of which the error keeps at most
  ///   64 KiB, is not JSON of this type; the message names the place and no value.
  public func decode<Value: Decodable>(
    _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
  ) throws(NetOptError) -> Value {
    guard let bytes = responseBody else {
      throw NetOptError(
        .decodeFailed, phase: .decode, "the error \(code) has no response body to decode")
    }
    do throws(JSONFault) { return try JSONFault.decode(type, decoder, bytes) } catch {
      throw NetOptError(
        .decodeFailed, phase: .decode,
        "the \(bytes.count) bytes that the error keeps of the response with status \(status ?? 0) are not the expected JSON: \(error.reason)",
        endpoint: endpoint, route: route)
    }
  }
}

/// Why a body is not JSON of the expected type: the place, and no value.
private struct JSONFault: Error {
  let reason: String

  /// Decodes a body.
  static func decode<Value: Decodable>(
    _ type: Value.Type, _ decoder: JSONDecoder, _ bytes: [UInt8]
  ) throws(JSONFault) -> Value {
    if bytes.isEmpty { throw JSONFault(reason: "it is empty") }
    if let fault = SlowText.fault(ofJSON: bytes) { throw JSONFault(reason: fault) }
    do { return try decoder.decode(type, from: Data(bytes)) } catch let error as DecodingError {
      throw JSONFault(reason: error.reason)
    } catch {
      throw JSONFault(reason: "\(Swift.type(of: error))")
    }
  }
}

extension NetOptResponse: CustomStringConvertible, CustomReflectable {
  /// The status, the URL without secret parameters (`HTTPURL.shown`), and the version of HTTP.
  public var description: String { "\(status) \(url.shown) (HTTP/\(version))" }

  /// The output of `dump`: status, URL, the names of the fields, and the endpoint. The values of the fields
  /// may be secrets.
  public var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "status": status, "url": url.shown, "headers": headers.map(\.name), "remote": remote as Any,
      ], displayStyle: .struct)
  }
}
