import Foundation
import FoundationNetworking
import NetOpt
import NetOptFoundation
import NetOptLocking
import NetOptTestSupport
import Testing

/// Tests the adapter where Foundation on Linux does the wrong thing, such as challenges and redirects. Also
/// tests which client a session uses, and how long the client lives.
@Suite("The URLSession adapter") struct AdapterTests {
  @Test("a 401 without credentials completes the task")
  func unanswered() async throws {
    let server = try LoopbackServer(
      .raw { try $0.respond(401, ["WWW-Authenticate": "Basic realm=\"a\""], text: "who?") })
    defer { server.stop() }
    let (session, client) = try Adapted.session()
    let (data, response) = try await session.data(from: Adapted.url(server))
    #expect((response as? HTTPURLResponse)?.statusCode == 401)
    #expect(response.url == Adapted.url(server))
    #expect(String(decoding: data, as: UTF8.self) == "who?")
    await client.shutdown()
  }

  @Test("fields whose names differ only in case are one field", arguments: 1...5)
  func namesInOtherCase(_ round: Int) async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        try exchange.write(
          "HTTP/1.1 200 OK\r\nVary: a\r\nvary: b\r\nVARY: c\r\nContent-Length: 0\r\n\r\n")
      })
    defer { server.stop() }
    let (session, client) = try Adapted.session()
    let (_, response) = try await session.data(from: Adapted.url(server))
    #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Vary") == "a, b, c")
    await client.shutdown()
  }

  @Test("a stored credential answers a challenge once")
  func storedCredential() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        let given = exchange.request.fields["Authorization"]
        if exchange.request.target == "/open", given == "Basic dTpw" {
          try exchange.respond(200, text: "in")
        } else {
          try exchange.respond(401, ["WWW-Authenticate": "Digest realm=\"x\", Basic realm=\"a, b\""])
        }
      })
    defer { server.stop() }
    let storage = URLCredentialStorage()
    storage.setDefaultCredential(
      URLCredential(user: "u", password: "p", persistence: .forSession),
      for: URLProtectionSpace(
        host: "127.0.0.1", port: Int(server.endpoint.port), protocol: "http", realm: "a, b",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic))
    let (session, client) = try Adapted.session { $0.urlCredentialStorage = storage }
    #expect(try await Adapted.text(session, Adapted.url(server, "open")) == "200 in")
    #expect(try await Adapted.text(session, Adapted.url(server, "closed")) == "401 ")
    #expect(server.requests.map(\.target) == ["/open", "/open", "/closed", "/closed"])
    await client.shutdown()
  }

  @Test("a delegate's credential answers a challenge, and a refusal cancels the task")
  func delegateCredential() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        if exchange.request.fields["Authorization"] == "Basic dTpw" {
          try exchange.respond(200, text: "in")
        } else {
          try exchange.respond(401, ["WWW-Authenticate": "Basic realm=\"a\""], text: "who?")
        }
      })
    defer { server.stop() }
    let delegate = CredentialDelegate()
    let storage = URLCredentialStorage()
    let (session, client) = try Adapted.session(delegate: delegate) { $0.urlCredentialStorage = storage }
    for number in 1...2 {
      #expect(try await Adapted.text(session, Adapted.url(server)) == "200 in")
      #expect(delegate.challenges.count == number)
    }
    #expect(storage.allCredentials.count == 1)
    delegate.refuses.withLock { $0 = true }
    #expect(try await Adapted.code { _ = try await session.data(from: Adapted.url(server)) } == .cancelled)
    // Both went over netopt.
    #expect(server.requests.allSatisfy { $0.fields["User-Agent"]?.hasPrefix("netopt") == true })
    await client.shutdown()
  }

  @Test("a redirect that keeps the method sends the body again", arguments: [307, 308])
  func bodyAgain(status: Int) async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        let body = try exchange.readBody()
        if exchange.request.target == "/" { return try exchange.respond(status, ["Location": "b"]) }
        try exchange.respond(200, body: body)
      })
    defer { server.stop() }
    let (session, client) = try Adapted.session()
    var request = URLRequest(url: Adapted.url(server))
    request.httpMethod = "POST"
    request.httpBody = Data("again".utf8)
    let (data, _) = try await session.data(for: request)
    #expect(String(decoding: data, as: UTF8.self) == "again")

    // A stream can be read once.
    request.httpBody = nil
    request.httpBodyStream = InputStream(data: Data("once".utf8))
    let streamed = request
    let code = try await Adapted.code { _ = try await session.data(for: streamed) }
    #expect(code == .requestBodyStreamExhausted)
    await client.shutdown()
  }

  @Test(
    "a redirect to another server carries neither the credentials nor the Cookie field of the first request")
  func credentialsStay() async throws {
    let other = try LoopbackServer(.raw { try $0.respond(200, text: "other") })
    defer { other.stop() }
    let server = try LoopbackServer(
      .raw { try $0.respond(302, ["Location": "http://\(other.endpoint)/deep/../x?q=1"]) })
    defer { server.stop() }
    let (session, client) = try Adapted.session {
      $0.httpAdditionalHeaders = ["Proxy-Authorization": "Basic secret", "X-More": "kept"]
    }
    var request = URLRequest(url: Adapted.url(server))
    request.setValue(server.endpoint.description, forHTTPHeaderField: "Host")
    request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
    request.setValue("own=1", forHTTPHeaderField: "Cookie")
    request.setValue("kept", forHTTPHeaderField: "X-Other")
    let (_, response) = try await session.data(for: request)
    #expect(response.url?.absoluteString == "http://\(other.endpoint)/deep/../x?q=1")
    #expect(other.requests.map(\.target) == ["/x?q=1"])
    let fields = try #require(other.requests.first).fields
    #expect(fields["Authorization"] == nil && fields["Cookie"] == nil && fields["X-Other"] == "kept")
    #expect(fields["Proxy-Authorization"] == nil && fields["X-More"] == "kept")
    #expect(fields["Host"] == other.endpoint.description)
    let first = try #require(server.requests.first).fields
    #expect(first["Cookie"] == "own=1" && first["Proxy-Authorization"] == "Basic secret")
    await client.shutdown()
  }

  /// The way to the trusted server: at once, over IPv6, or by another scheme of URL.
  @Test(
    "a redirect of another server to a host with credentials of the client is the final response",
    arguments: ["", "over-ipv6", "with-user", "upper-case"])
  func foreignRedirect(_ way: String) async throws {
    let trusted = try LoopbackServer(.raw { try $0.respond(200, text: "trusted") })
    defer { trusted.stop() }
    let port = trusted.endpoint.port
    let target =
      switch way {
      case "with-user": "http://user:other@localhost:\(port)/delete-all"
      case "upper-case": "HTTP://LOCALHOST:\(port)/delete-all"
      default: "http://localhost:\(port)/delete-all"
      }
    let second = try LoopbackServer(
      .raw { try $0.respond(302, ["Location": target]) }, on: try #require(IPAddress("::1")))
    defer { second.stop() }
    let other = try LoopbackServer(
      .raw { exchange in
        switch exchange.request.target {
        case "/own": try exchange.respond(302, ["Location": "/end"])
        case "/end": try exchange.respond(200, text: "end")
        case "/over-ipv6": try exchange.respond(302, ["Location": "http://\(second.endpoint)/"])
        default: try exchange.respond(302, ["Location": target])
        }
      })
    defer { other.stop() }
    var settings = ClientConfiguration()
    settings.authorization = [.basic(user: "user", password: "secret", hosts: ["localhost"])]
    let client = try NetOptClient(settings)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.useNetOpt(client)
    let session = URLSession(configuration: configuration)
    #expect(try await Adapted.text(session, Adapted.url(other, way)).hasPrefix("302"))
    #expect(trusted.requests.isEmpty && second.requests.count == (way == "over-ipv6" ? 1 : 0))
    #expect(try await Adapted.text(session, Adapted.url(other, "own")) == "200 end")
    await client.shutdown()
  }

  /// A delegate that never answers a question about a redirect.
  private final class SilentDelegate: NSObject, URLSessionDataDelegate {
    let asked = Latch()
    let ended = Latch()

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) { asked.open() }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      ended.open()
    }
  }

  @Test(
    "a question that is never answered keeps nothing alive after the end of its task", .timeLimit(.minutes(1))
  )
  func silentDelegate() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(302, ["Location": "/b"]) })
    defer { server.stop() }
    let delegate = SilentDelegate()
    weak var kept: NetOptClient?
    do {
      let (session, client) = try Adapted.session(delegate: delegate)
      kept = client
      let task = session.dataTask(with: Adapted.url(server))
      task.resume()
      try await delegate.asked.wait()
      task.cancel()
      try await delegate.ended.wait()
      session.finishTasksAndInvalidate()
    }
    try await wait(for: "the release of the client") { kept == nil }
  }

  @Test("the error of netopt is the cause of the URLError")
  func underlying() async throws {
    let (session, client) = try Adapted.session()
    let url = try #require(URL(string: "http://127.0.0.1:\(try FreePort.find(on: [.loopback]))/a"))
    do {
      _ = try await session.data(from: url)
      Issue.record("the port is free")
    } catch let error as URLError {
      #expect(error.code == .cannotConnectToHost && error.failingURL == url)
      #expect((error.userInfo[NSUnderlyingErrorKey] as? NetOptError)?.code == .connectFailed)
    }
    await client.shutdown()
    #expect(try await Adapted.code { _ = try await session.data(from: url) } == .cancelled)
  }

  @Test("each configuration uses its own client")
  func severalClients() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200) })
    defer { server.stop() }
    var clients: [NetOptClient] = []
    var sessions: [URLSession] = []
    for name in ["one", "two"] {
      var settings = ClientConfiguration()
      settings.userAgent = name
      clients.append(try NetOptClient(settings))
      let configuration = URLSessionConfiguration.ephemeral
      configuration.connectionProxyDictionary = ["other": "entry"]
      configuration.useNetOpt(try NetOptClient())
      // The last call counts.
      configuration.useNetOpt(clients[clients.count - 1])
      #expect(configuration.connectionProxyDictionary?["other"] as? String == "entry")
      sessions.append(URLSession(configuration: configuration))
    }
    for session in sessions + [sessions[0]] { _ = try await session.data(from: Adapted.url(server)) }
    #expect(server.requests.map { $0.fields["User-Agent"] } == ["one", "two", "one"])
    for client in clients { await client.shutdown() }
  }

  /// `useNetOpt` stores the client in `connectionProxyDictionary`.
  @Test("the tasks of a session fail if its configuration has lost the client")
  func lostClient() async throws {
    let (session, client) = try Adapted.session { $0.connectionProxyDictionary = nil }
    session.configuration.connectionProxyDictionary = [:]
    let url = try #require(URL(string: "http://127.0.0.1:1/"))
    #expect(try await Adapted.code { _ = try await session.data(from: url) } == .unknown)
    await client.shutdown()
  }

  @Test("a client lives as long as the session that uses it")
  func noLeak() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, text: "a") })
    defer { server.stop() }
    weak var weakClient: NetOptClient?
    do {
      let (session, client) = try Adapted.session()
      weakClient = client
      _ = try await session.data(from: Adapted.url(server))
      session.finishTasksAndInvalidate()
    }
    try await wait(for: "the client to be released") { weakClient == nil }
  }

  @Test("after one call of useNetOpt, URLSession.shared uses the client")
  func shared() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, text: "shared") })
    defer { server.stop() }
    var settings = ClientConfiguration()
    settings.userAgent = "of the shared session"
    let client = try NetOptClient(settings)
    let before = URLSession.shared.configuration.protocolClasses
    URLSession.shared.configuration.useNetOpt(client)
    #expect(try await Adapted.text(URLSession.shared, Adapted.url(server)) == "200 shared")
    #expect(server.requests.first?.fields["User-Agent"] == "of the shared session")
    URLSession.shared.configuration.protocolClasses = before
    await client.shutdown()
  }
}

/// A delegate that has one credential.
private final class CredentialDelegate: NSObject, URLSessionDataDelegate {
  let challenges = Counter()
  let refuses = Locked(false)

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    challenges.add(1)
    if refuses.withLock({ $0 }) { return completionHandler(.cancelAuthenticationChallenge, nil) }
    completionHandler(.useCredential, URLCredential(user: "u", password: "p", persistence: .forSession))
  }
}
