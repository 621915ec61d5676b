// Usage: urlsession-program HTTP_URL HTTPS_URL REFUSED_URL
//
// A program on URLSession, which prints what it sees. With NETOPT=1 in the environment, its sessions use
// netopt. The output must be the same. `ProgramTests` in NetOptFoundationTests starts the servers.

import Foundation
import FoundationNetworking
import NetOpt
import NetOptFoundation

let arguments = CommandLine.arguments.dropFirst().map(parsed)
let (base, secure, refused) = (arguments[0], arguments[1], arguments[2])
let client: NetOptClient? = try {
  guard ProcessInfo.processInfo.environment["NETOPT"] == "1" else { return nil }
  var configuration = ClientConfiguration()
  configuration.list = .none
  return try NetOptClient(configuration)
}()

/// Makes a session with cookies of its own.
@MainActor func makeSession(
  delegate: (any URLSessionDelegate)? = nil, _ change: (URLSessionConfiguration) -> Void = { _ in }
) -> URLSession {
  let configuration = URLSessionConfiguration.ephemeral
  configuration.httpAdditionalHeaders = ["X-Everywhere": "yes"]
  change(configuration)
  if let client { configuration.useNetOpt(client) }
  return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
}

func parsed(_ text: String) -> URL {
  guard let url = URL(string: text) else { fatalError("not a URL: \(text)") }
  return url
}

@MainActor func url(_ path: String) -> URL { parsed(base.absoluteString + path) }

@MainActor func request(
  _ method: String, _ path: String, _ change: (inout URLRequest) -> Void = { _ in }
) -> URLRequest {
  var request = URLRequest(url: url(path))
  request.httpMethod = method
  change(&request)
  return request
}

/// A response as a line: status, path, some fields, and the body or its length.
func text(_ data: Data?, _ response: URLResponse?) -> String {
  guard let response = response as? HTTPURLResponse else { return "no response" }
  let fields = response.allHeaderFields.compactMap { key, value -> String? in
    guard let key = key as? String, key.hasPrefix("X-") || key.hasPrefix("Content-") || key == "Set-Cookie"
    else { return nil }
    return "\(key)=\(value)"
  }
  let body =
    data.map { $0.count <= 400 ? String(decoding: $0, as: UTF8.self) : "\($0.count) bytes \(digest($0))" }
    ?? "none"
  return [
    "\(response.statusCode)", response.url?.path ?? "no url", "expected \(response.expectedContentLength)",
    "type \(response.mimeType ?? "none")", fields.sorted().joined(separator: " "), "body: \(body)",
  ].joined(separator: " | ")
}

/// A number that depends on all bytes and their order.
func digest(_ data: Data) -> UInt64 {
  data.reduce(14_695_981_039_346_656_037) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
}

/// Prints a line at once. So when the program hangs, a test still sees the lines before that moment. The "| "
/// at the beginning distinguishes the line from Foundation's log messages.
func say(_ line: String) { FileHandle.standardOutput.write(Data("| \(line)\n".utf8)) }

/// An error as a line. The line of a timeout has no path: netopt's error has the URL, but Foundation's has
/// none.
func text(_ error: (any Error)?) -> String {
  guard let error else { return "no error" }
  guard let error = error as? URLError else { return "not a URLError" }
  return "URLError \(error.code.rawValue) \(error.code == .timedOut ? "-" : error.failingURL?.path ?? "-")"
}

@MainActor func show(_ name: String, _ load: @MainActor () async throws -> (Data, URLResponse)) async {
  do {
    let (data, response) = try await load()
    say("\(name): \(text(data, response))")
  } catch {
    say("\(name): \(text(error))")
  }
}

@MainActor func show(_ name: String, _ session: URLSession, _ request: URLRequest) async {
  await show(name) { try await session.data(for: request) }
}

// Async functions.

let session = makeSession()
await show("GET", session, request("GET", "hello"))
await show("GET field", session, request("GET", "echo") { $0.setValue("1", forHTTPHeaderField: "X-Custom") })
await show("HEAD", session, request("HEAD", "hello"))
await show("204", session, request("GET", "empty"))
await show("304", session, request("GET", "unmodified"))
await show("404", session, request("GET", "status/404"))
await show("500", session, request("POST", "status/500"))
await show("DELETE", session, request("DELETE", "echo"))
await show("POST empty", session, request("POST", "echo"))
await show("POST data", session, request("POST", "echo") { $0.httpBody = Data("a=1".utf8) })
await show("PUT data", session, request("PUT", "echo") { $0.httpBody = Data("put".utf8) })
await show("GET with a body", session, request("GET", "echo") { $0.httpBody = Data("a".utf8) })
await show("chunked", session, request("GET", "chunked"))
await show("large", session, request("GET", "large"))
await show("gzip", session, request("GET", "gzip"))
await show("repeated fields", session, request("GET", "repeated"))
await show(
  "authorization", session,
  request("GET", "auth") { $0.setValue("Basic dTpw", forHTTPHeaderField: "Authorization") })
let big = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
await show("POST large", session, request("POST", "echo") { $0.httpBody = big })
await show("POST stream", session, request("POST", "echo") { $0.httpBodyStream = InputStream(data: big) })

let file = FileManager.default.temporaryDirectory.appendingPathComponent("upload-\(UUID().uuidString)")
try big.write(to: file)
await show("upload data") { try await session.upload(for: request("PUT", "echo"), from: big) }
await show("upload file") { try await session.upload(for: request("PUT", "echo"), fromFile: file) }
await show("upload missing file") {
  try await session.upload(for: request("PUT", "echo"), fromFile: URL(fileURLWithPath: "/nonexistent"))
}
try FileManager.default.removeItem(at: file)
do {
  let (file, response) = try await session.download(for: request("GET", "large"))
  say("download: \(text(try Data(contentsOf: file), response))")
  try FileManager.default.removeItem(at: file)
} catch {
  say("download: \(text(error))")
}

// Redirects.

for status in [301, 302, 303, 307, 308] {
  for method in ["GET", "PUT"] {
    await show("\(status) \(method)", session, request(method, "redirect/\(status)"))
  }
}
await show("301 POST", session, request("POST", "redirect/301") { $0.httpBody = Data("a".utf8) })
await show("303 POST", session, request("POST", "redirect/303") { $0.httpBody = Data("a".utf8) })
await show("300", session, request("GET", "redirect/300"))
await show("302 without Location", session, request("GET", "status/302"))
await show("endless redirects", session, request("GET", "loop"))

// Cookies.

let withCookies = makeSession()
let cookies = withCookies.configuration.httpCookieStorage
await show("cookies set", withCookies, request("GET", "cookies/set"))
await show("cookies sent", withCookies, request("GET", "echo"))
await show("cookie of a redirect", withCookies, request("GET", "cookies/redirect"))
await show("cookies removed", withCookies, request("GET", "cookies/remove"))
await show("cookies left", withCookies, request("GET", "echo"))
say("\((cookies?.cookies ?? []).map { "\($0.name)=\($0.value) \($0.path)" }.sorted())")
let withoutCookies = makeSession {
  $0.httpCookieStorage = cookies
  $0.httpShouldSetCookies = false
}
await show("cookies not sent", withoutCookies, request("GET", "echo"))

// Errors.

/// A label with more than the 63 bytes that DNS allows. So the resolver fails without asking a name server.
let longLabel = String(repeating: "a", count: 64)

await show("refused", session, URLRequest(url: refused))
await show("untrusted certificate", session, URLRequest(url: secure))
await show("no such host", session, URLRequest(url: parsed("http://\(longLabel)/")))
await show("cut body", session, request("GET", "cut"))
await show("cut chunks", session, request("GET", "cut/chunks"))
await show("no response", session, request("POST", "nothing"))
await show("timeout", session, request("GET", "slow") { $0.timeoutInterval = 1 })
await show("timeout in the body", session, request("GET", "slow/body") { $0.timeoutInterval = 1 })

// Completion handlers.

for path in ["hello", "chunked", "cut"] {
  await withCheckedContinuation { done in
    session.dataTask(with: url(path)) { data, response, error in
      say("handler \(path): \(error == nil ? text(data, response) : text(error))")
      done.resume()
    }.resume()
  }
}

// Delegates.

let delegate = Recorder()
let delegated = makeSession(delegate: delegate)
await delegate.run("delegate GET", delegated.dataTask(with: url("hello")))
await delegate.run("delegate chunked", delegated.dataTask(with: url("chunked")))
await delegate.run("delegate large", delegated.dataTask(with: url("large")))
await delegate.run("delegate 404", delegated.dataTask(with: url("status/404")))
await delegate.run("delegate upload", delegated.uploadTask(with: request("PUT", "echo"), from: big))
delegate.stream = big
await delegate.run("delegate stream", delegated.uploadTask(withStreamedRequest: request("PUT", "echo")))
await delegate.run("delegate download", delegated.downloadTask(with: url("large")))
await delegate.run("delegate cut", delegated.dataTask(with: url("cut")))
await delegate.run("delegate redirect", delegated.dataTask(with: url("redirect/302")))
delegate.refusesRedirects = true
await delegate.run("delegate refuses", delegated.dataTask(with: url("redirect/302")))

// Cancellation.

await delegate.run("cancelled before the start", delegated.dataTask(with: url("hello"))) { $0.cancel() }
delegate.cancelsAtResponse = true
await delegate.run("cancelled at the response", delegated.dataTask(with: url("slow/head")))
let waiting = Task { await show("cancelled", session, request("GET", "slow")) }
await show("server has the request", session, request("GET", "slow/arrived"))
waiting.cancel()
await waiting.value
session.finishTasksAndInvalidate()
delegated.finishTasksAndInvalidate()
await client?.shutdown()
