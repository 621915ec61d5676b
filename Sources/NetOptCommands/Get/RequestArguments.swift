import NetOpt
import NetOptCore

/// The options that describe a request, and the functions that read them. The names and meanings of the
/// options are curl's.
enum RequestArguments {
  static let method = Option(
    "request", short: "X", takes: .required("METHOD"), "request method; default: GET, or POST with -d")
  static let header = Option(
    "header", short: "H", takes: .required("'NAME: VALUE'"), "send a header field; may be repeated")
  static let data = Option(
    "data", short: "d", takes: .required("DATA"),
    "send DATA as the body; @FILE: the content of FILE without line ends; @-: standard input; several are joined with &"
  )
  static let maxRedirects = Option(
    "max-redirs", takes: .required("N"),
    "follow up to N redirects, 0 to 1000; 0 returns the redirect itself; default: 10")
  static let retry = Option(
    "retry", takes: .required("N"),
    "retry a repeatable request up to N times, 0 to 100; 0 for never; default: 2 (fetch: 0)")
  private static let location = Option("location", short: "L", "follow redirects (the default)")

  /// All options, in the order of the help text.
  static let options = [method, header, data, location, maxRedirects, retry]

  /// The maximum size of a request body in bytes: 256 MiB. The body stays in memory, because after a redirect
  /// the client may have to send it again.
  private static let largestBody = 256 << 20

  /// Creates the request, for a command that sends it.
  ///
  /// - Parameter isHead: whether the method is HEAD unless `-X` names another one.
  /// - Throws: `UsageError`; `NetOptError` for an invalid URL and for a file that cannot be read.
  static func request(
    _ arguments: Arguments, isHead: Bool, in context: CommandContext
  ) throws -> NetOptRequest {
    var request = try NetOptRequest(.get, arguments.operands[0])
    request.options = try ClientOptions.requestOptions(arguments)
    try limits(arguments, &request.options)
    let data = arguments.values(of: data)
    if isHead, !data.isEmpty { throw UsageError("-I sends HEAD, which has no body; remove -I or -d") }
    (request.headers, request.body) = try content(arguments, in: context)
    request.method = try method(arguments, default: isHead ? .head : data.isEmpty ? .get : .post)
    return request
  }

  /// Sets the maximum number of redirects and of attempts, if the command line has `--max-redirs` and
  /// `--retry`. The first attempt is not a retry, so N retries are N + 1 attempts.
  static func limits(_ arguments: Arguments, _ options: inout RequestOptions) throws(UsageError) {
    if let limit = try arguments.integer(maxRedirects, in: 0...1000) { options.maxRedirects = limit }
    if let retries = try arguments.integer(retry, in: 0...100) { options.maxAttempts = retries + 1 }
  }

  /// Returns the method, the header fields and the body, for commands that do not send the request: `sign`
  /// and `verify`.
  static func parts(
    _ arguments: Arguments, in context: CommandContext
  ) throws -> (method: String, headers: HeaderFields, body: [UInt8]) {
    let (headers, body) = try content(arguments, in: context)
    let bytes: [UInt8] = if case .bytes(let bytes) = body.source { bytes } else { [] }
    let method = try method(arguments, default: arguments.values(of: data).isEmpty ? .get : .post)
    return (method.rawValue, headers, bytes)
  }

  /// Returns the header fields of `-H` and the body of `-d`. If there is a body and no `Content-Type` field,
  /// adds this field, as curl does.
  private static func content(
    _ arguments: Arguments, in context: CommandContext
  ) throws -> (HeaderFields, RequestBody) {
    var headers = HeaderFields(try arguments.values(of: header).enumerated().map(field))
    let data = arguments.values(of: data)
    guard !data.isEmpty else { return (headers, .none) }
    if !headers.contains(name: "Content-Type") {
      headers["Content-Type"] = "application/x-www-form-urlencoded"
    }
    return (headers, .bytes(try body(data, in: context)))
  }

  /// Returns the method of `-X`, or `usual` without this option.
  private static func method(
    _ arguments: Arguments, default usual: NetOptRequest.Method
  ) throws(UsageError) -> NetOptRequest.Method {
    guard let name = arguments.value(of: method) else { return usual }
    guard HeaderFields.isToken(name) else {
      throw UsageError("\"\(name)\" is not a method; use for example PUT")
    }
    return NetOptRequest.Method(rawValue: name)
  }

  /// Parses the value of one `-H`. `Name;` is a field with an empty value, as with curl. The messages of
  /// errors never contain the value of a field, because it may be a secret.
  ///
  /// - Parameter index: the position of this `-H` among all `-H`, from 0, for messages.
  private static func field(_ index: Int, _ text: String) throws(UsageError) -> HeaderField {
    if text.hasSuffix(";"), HeaderFields.isToken(String(text.dropLast())) {
      return HeaderField(String(text.dropLast()), "")
    }
    guard let colon = text.firstIndex(of: ":") else {
      throw UsageError("-H number \(index + 1) has no colon; write -H 'NAME: VALUE'")
    }
    let isSpace = { (character: Character) in character == " " || character == "\t" }
    let value = text[text.index(after: colon)...].drop(while: isSpace)
    let end = value.lastIndex { !isSpace($0) }.map(value.index(after:)) ?? value.endIndex
    let field = HeaderField(String(text[..<colon]), String(value[..<end]))
    if let fault = HeaderFields.fault(of: field) { throw UsageError("-H: \(fault)") }
    if field.value.isEmpty {
      throw UsageError(
        "-H '\(field.name):' has no value; to send an empty value, write '\(field.name);'")
    }
    return field
  }

  /// Joins the values of all `-d` with "&". Removes line ends and NULs from the content of files, as curl
  /// does.
  private static func body(_ data: [String], in context: CommandContext) throws(NetOptError) -> [UInt8] {
    let tooLarge = NetOptError(
      .invalidRequest, phase: .send, "the body of -d is larger than 256 MiB; send a smaller body")
    var body: [UInt8] = []
    for (index, part) in data.enumerated() {
      if index > 0 { body.append(0x26) }
      if part.hasPrefix("@") {
        let file = try context.read(String(part.dropFirst()), upTo: largestBody, for: .send)
        // Check the size before removing line ends: of a larger file, only the first part was read.
        if file.count > largestBody { throw tooLarge }
        body += file.lazy.filter { $0 != 0x0a && $0 != 0x0d && $0 != 0 }
      } else {
        body += part.utf8
      }
      if body.count > largestBody { throw tooLarge }
    }
    return body
  }
}
