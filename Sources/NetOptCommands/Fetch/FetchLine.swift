import NetOptCore
import NetOptCrypto
import NetOptSigning

/// A request of `netopt fetch --jsonl`: docs/schemas/fetch-line.schema.json.
struct FetchLine: Sendable {
  /// What a redirect leads to.
  enum Redirect: String, CaseIterable, Sendable {
    /// It is followed.
    case follow
    /// It is the answer.
    case manual
    /// It is an error.
    case error
  }

  /// What the answer is told apart by: a text, a whole number, true or false; null for anything else.
  let id: JSONValue
  let method: NetOptRequest.Method
  let url: HTTPURL
  let headers: HeaderFields
  let body: [UInt8]?
  let redirect: Redirect
  /// `nil` for what the command line says.
  let cache: CacheArguments.Mode?
  /// The cache that is used: each partition is one of its own.
  let partition: String

  /// What is wrong with a line, and what it calls itself, as far as that could be read.
  struct Fault: Error {
    let id: JSONValue
    let error: NetOptError
  }

  private static let members: Set = [
    "id", "method", "url", "headers", "body", "redirect", "cache", "partition",
  ]

  /// Reads a line.
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

  private init(_ root: JSONPart, _ id: JSONValue) throws {
    for member in try root.members() where !Self.members.contains(member.name) {
      throw member.value.fault("a line has no such member")
    }
    self.id = id
    url = try HTTPURL(try root.required("url").string())
    method = try Self.method(root)
    headers = try Self.headers(root)
    body = try root.member("body").map { Array(try $0.string().utf8) }
    redirect = try Self.choice(root, "redirect") ?? .follow
    cache = try Self.choice(root, "cache")
    partition = try root.member("partition")?.string() ?? ""
  }

  private static func malformed(_ fault: JSONFault) -> NetOptError {
    NetOptError(.invalidRequest, phase: .send, "the line is no request: \(fault.place): \(fault.rule)")
  }

  private static func method(_ root: JSONPart) throws -> NetOptRequest.Method {
    guard let part = try root.member("method") else { return .get }
    let name = try part.string()
    guard HeaderFields.isToken(name) else { throw part.fault("is no method; write one as PUT") }
    return NetOptRequest.Method(rawValue: name)
  }

  private static func headers(_ root: JSONPart) throws -> HeaderFields {
    var fields = HeaderFields()
    for pair in try root.member("headers")?.elements() ?? [] {
      let parts = try pair.elements()
      guard parts.count == 2 else { throw pair.fault("has to be a name and a value") }
      let field = HeaderField(try parts[0].string(), try parts[1].string())
      if let fault = HeaderFields.fault(of: field) { throw pair.fault(fault) }
      fields.append(field)
    }
    return fields
  }

  private static func choice<Choice: RawRepresentable & CaseIterable>(
    _ root: JSONPart, _ name: String
  ) throws -> Choice? where Choice.RawValue == String {
    guard let part = try root.member(name) else { return nil }
    guard let choice = Choice(rawValue: try part.string()) else {
      throw part.fault("is \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return choice
  }

  /// The request.
  ///
  /// - Parameters:
  ///   - options: what the command line says of all requests.
  ///   - caching: how the cache is used in each of its modes.
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
