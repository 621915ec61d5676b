import NetOptCore
import NetOptCrypto
import NetOptSigning

/// One request, read from an input line of `netopt fetch --jsonl`: docs/schemas/fetch-line.schema.json.
struct FetchLine: Sendable {
  /// What the command does when the response is a redirect.
  enum Redirect: String, CaseIterable, Sendable {
    /// Follows the redirect.
    case follow
    /// Returns the redirect as the response.
    case manual
    /// Reports the redirect as an error.
    case error
  }

  /// The `id` member of the line, which the command copies to the output line. A string, an integer or a
  /// Boolean; null when the member is missing or has any other value.
  let id: JSONValue
  let method: NetOptRequest.Method
  let url: HTTPURL
  let headers: HeaderFields
  /// The body in UTF-8; `nil` if the line has none.
  let body: [UInt8]?
  /// What the command does when the response is a redirect. Default: `follow`.
  let redirect: Redirect
  /// The cache mode of the request; `nil` to use the mode from the command line.
  let cache: CacheArguments.Mode?
  /// The cache partition (`CacheOptions.partition`). Each partition is a separate cache. Empty by default.
  let partition: String

  /// Why a line is not a valid request. `id` is the `id` member of the line, as in `FetchLine.id`; null also
  /// when the line is not JSON.
  struct Fault: Error {
    let id: JSONValue
    let error: NetOptError
  }

  /// The names of the members that a line may have.
  private static let members: Set = [
    "id", "method", "url", "headers", "body", "redirect", "cache", "partition",
  ]

  /// Parses a line.
  ///
  /// - Parameter text: the line in UTF-8, without its line end.
  init(_ text: [UInt8]) throws(Fault) {
    let root: JSONPart
    do throws(JSONFault) { root = try JSONDocument.read(SecretBytes(copying: text)) } catch {
      throw Fault(id: .null, error: Self.malformed(error))
    }
    let id = (try? root.member("id")).map { $0?.plain ?? .null } ?? .null
    do {
      try self.init(root, id)
    } catch let fault as JSONFault {
      throw Fault(id: id, error: Self.malformed(fault))
    } catch let error as NetOptError {
      throw Fault(id: id, error: error)
    } catch {
      throw Fault(id: id, error: NetOptError(.invalidRequest, phase: .send, "\(error)"))
    }
  }

  /// Reads a request from a parsed line.
  ///
  /// - Parameter id: the value for `FetchLine.id`.
  /// - Throws: `JSONFault` for a member that breaks a rule of the schema; `NetOptError` for an invalid URL.
  private init(_ root: JSONPart, _ id: JSONValue) throws {
    for member in try root.members() where !Self.members.contains(member.name) {
      throw member.value.fault("is not a member of a request line")
    }
    self.id = id
    url = try HTTPURL(try root.required("url").string())
    method = try Self.method(root)
    headers = try Self.headers(root)
    body = try root.member("body").map { try $0.bytes() }
    redirect = try Self.choice(root, "redirect") ?? .follow
    cache = try Self.choice(root, "cache")
    partition = try root.member("partition")?.string() ?? ""
  }

  /// Returns the error for a line that is not valid JSON or breaks a rule of the schema.
  private static func malformed(_ fault: JSONFault) -> NetOptError {
    NetOptError(
      .invalidRequest, phase: .send, "the line is not a valid request: \(fault.location): \(fault.rule)")
  }

  private static func method(_ root: JSONPart) throws -> NetOptRequest.Method {
    guard let part = try root.member("method") else { return .get }
    let name = try part.string()
    guard HeaderFields.isToken(name) else { throw part.fault("is not a method; use for example PUT") }
    return NetOptRequest.Method(rawValue: name)
  }

  private static func headers(_ root: JSONPart) throws -> HeaderFields {
    var fields = HeaderFields()
    guard let pairs = try root.member("headers")?.elements() else { return fields }
    for pair in pairs {
      let parts = try pair.elements()
      guard parts.count == 2 else { throw pair.fault("must be a name and a value") }
      let field = HeaderField(try parts[0].string(), try parts[1].string())
      if let fault = HeaderFields.fault(of: field) { throw pair.fault(fault) }
      fields.append(field)
    }
    return fields
  }

  /// Reads a member whose value is one of the raw values of `Choice`; `nil` when the member is missing.
  private static func choice<Choice: RawRepresentable & CaseIterable>(
    _ root: JSONPart, _ name: String
  ) throws -> Choice? where Choice.RawValue == String {
    guard let part = try root.member(name) else { return nil }
    guard let choice = Choice(rawValue: try part.string()) else {
      throw part.fault("must be one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return choice
  }

  /// Returns the request to send. A member of the line takes precedence over the option of the command line
  /// with the same meaning.
  ///
  /// - Parameters:
  ///   - options: the request options from the command line.
  ///   - caching: the cache options from the command line.
  func request(_ options: RequestOptions, _ caching: CacheArguments) -> NetOptRequest {
    var request = NetOptRequest(method, url, headers: headers, options: options)
    if let body { request.body = .bytes(body) }
    if redirect != .follow { request.options.maxRedirects = 0 }
    var cache = caching.options(cache ?? caching.mode ?? .off)
    cache.partition = partition
    request.options.cache = cache
    return request
  }
}
