public import FoundationEssentials

/// An error of netopt: what failed, in which phase, and what to do about it. The throwing functions of
/// netopt's public API throw this type, except those that run a closure of the program.
///
/// A cancelled call throws this type too, with the code `cancelled`, and not `CancellationError`: the
/// functions declare the type of their errors, and the error keeps the route of the call.
public struct NetOptError: Error, Sendable {
  /// The kind of failure. Later versions may add kinds, so a `switch` over codes needs a `default`.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Kind: Hashable {
      case known(Known)
      case custom(String)
    }

    private enum Known: String {
      case invalidURL = "invalid-url"
      case invalidRequest = "invalid-request"
      case invalidConfiguration = "invalid-configuration"
      case invalidList = "invalid-list"
      case invalidSignature = "invalid-signature"
      case invalidKey = "invalid-key"
      case invalidKeys = "invalid-keys"
      case unreadableFile = "unreadable-file"
      case unwritableFile = "unwritable-file"
      case cancelled
      case timeout
      case shutDown = "shut-down"
      case nameNotFound = "name-not-found"
      case resolverFailed = "resolver-failed"
      case connectFailed = "connect-failed"
      case proxyFailed = "proxy-failed"
      case tlsFailed = "tls-failed"
      case certificateName = "certificate-name"
      case certificateUntrusted = "certificate-untrusted"
      case certificateExpired = "certificate-expired"
      case certificatePin = "certificate-pin"
      case noAuthorities = "no-authorities"
      case sendFailed = "send-failed"
      case receiveFailed = "receive-failed"
      case protocolViolation = "protocol-violation"
      case decodeFailed = "decode-failed"
      case headTooLarge = "head-too-large"
      case bodyTooLarge = "body-too-large"
      case tooManyRedirects = "too-many-redirects"
      case unexpectedStatus = "unexpected-status"
      case unsupported
      case libraryFailed = "library-failed"
      case signingFailed = "signing-failed"
    }

    private let kind: Kind
    private init(_ known: Known) { kind = .known(known) }
    private init(_ kind: Kind) { self.kind = kind }

    /// The name of the code, as in JSON output. It does not change between versions.
    public var description: String {
      switch kind {
      case .known(let known): known.rawValue
      case .custom(let name): name
      }
    }

    /// A code of the program's own, for errors that its interceptors throw. It differs from all codes of
    /// netopt, also from one with the same name.
    ///
    /// - Parameter name: the name, such as `token-expired`. Must not contain a secret.
    public static func custom(_ name: String) -> Code { Code(.custom(name)) }

    /// The text is not a usable URL.
    public static let invalidURL = Code(.invalidURL)
    /// The request has a method, header or body that cannot be sent.
    public static let invalidRequest = Code(.invalidRequest)
    /// A setting of the client is invalid or names something that does not exist.
    public static let invalidConfiguration = Code(.invalidConfiguration)
    /// The IP list violates a rule of its format.
    public static let invalidList = Code(.invalidList)
    /// A signature is missing, malformed, or not made by a trusted key.
    public static let invalidSignature = Code(.invalidSignature)
    /// A key of a signature is malformed or damaged, or its password is wrong. A faulty key of a client
    /// certificate is `invalidConfiguration`.
    public static let invalidKey = Code(.invalidKey)
    /// The key ring violates a rule of its format.
    public static let invalidKeys = Code(.invalidKeys)
    /// A file could not be read.
    public static let unreadableFile = Code(.unreadableFile)
    /// A file could not be written. The previous file is unchanged.
    public static let unwritableFile = Code(.unwritableFile)
    /// The task was cancelled, or the program released the response before the end of its body.
    public static let cancelled = Code(.cancelled)
    /// The call did not end before its deadline, or a part of it took longer than its time limit.
    public static let timeout = Code(.timeout)
    /// The client has been shut down.
    public static let shutDown = Code(.shutDown)
    /// DNS has no address for the name, or the name is not a valid host name.
    public static let nameNotFound = Code(.nameNotFound)
    /// The DNS look-up failed: no name server answered, none gave a usable answer (for example, because of
    /// SERVFAIL or REFUSED), or c-ares could not be set up.
    public static let resolverFailed = Code(.resolverFailed)
    /// No connection could be opened.
    public static let connectFailed = Code(.connectFailed)
    /// The proxy failed, refused the connection, or could not connect to the server.
    public static let proxyFailed = Code(.proxyFailed)
    /// The TLS handshake failed.
    public static let tlsFailed = Code(.tlsFailed)
    /// The certificate is valid for other names only.
    public static let certificateName = Code(.certificateName)
    /// The certificate is not trusted: no trusted authority signed it, a certificate of its chain is revoked
    /// or its revocation list is missing, or it is not for servers.
    public static let certificateUntrusted = Code(.certificateUntrusted)
    /// The certificate has expired or is not yet valid.
    public static let certificateExpired = Code(.certificateExpired)
    /// The settings or the IP list pin the keys of the host, and its certificate has another key.
    public static let certificatePin = Code(.certificatePin)
    /// The trusted certificate authorities cannot be read: either the file that a setting names or this
    /// machine's default.
    public static let noAuthorities = Code(.noAuthorities)
    /// The request has no response: the connection ended while the request was being sent or before the
    /// response head was complete, no server processed the request, or the stream of the request's body
    /// failed.
    public static let sendFailed = Code(.sendFailed)
    /// The response is missing or incomplete: the connection ended after the response head was complete, or
    /// the endpoint went silent before a response began. A connection that ends inside the head leads to this
    /// code or to `sendFailed`.
    public static let receiveFailed = Code(.receiveFailed)
    /// The server violated the HTTP protocol.
    public static let protocolViolation = Code(.protocolViolation)
    /// The body cannot be decoded: it is not valid in its content coding, is not the expected JSON, or has a
    /// charset that `text` does not read.
    public static let decodeFailed = Code(.decodeFailed)
    /// The response head, including interim responses and trailers, is larger than 256 KiB, or one part of it
    /// exceeds a limit of libcurl.
    public static let headTooLarge = Code(.headTooLarge)
    /// The body, or a line of it, is larger than its limit.
    public static let bodyTooLarge = Code(.bodyTooLarge)
    /// There were more redirects than the request allows.
    public static let tooManyRedirects = Code(.tooManyRedirects)
    /// The status of the response is not 2xx (`NetOptResponse.requireSuccess`).
    public static let unexpectedStatus = Code(.unexpectedStatus)
    /// The libraries on this machine do not support the requested feature.
    public static let unsupported = Code(.unsupported)
    /// A C library failed, and no other code describes the failure. `underlying` has the library's code.
    public static let libraryFailed = Code(.libraryFailed)
    /// The request could not be signed: the key does not apply to it, or a component to be signed is missing.
    public static let signingFailed = Code(.signingFailed)
  }

  /// The phase of a call in which a failure happened.
  public enum Phase: String, Hashable, Sendable {
    /// Fetching, reading or writing the IP list, or reading another file, except those of the TLS settings.
    case list
    /// Parsing the URL, and looking up the host name in DNS.
    case resolve
    /// Opening the TCP connection.
    case connect
    /// The TLS handshake, or reading the TLS settings and their files.
    case tls
    /// Making or sending the request.
    case send
    /// Receiving the response.
    case receive
    /// Decoding the body.
    case decode
    /// Signing the request.
    case sign
    /// Reading from or writing to the response cache.
    case cache
  }

  /// The error code of a C library or the operating system.
  public struct Underlying: Hashable, Sendable, CustomStringConvertible {
    /// The library that defines the code.
    public enum Library: String, Hashable, Sendable {
      /// libcurl's `CURLcode` or `CURLMcode`: libcurl-errors(3).
      case curl
      /// c-ares's status: ares_strerror(3).
      case ares
      /// SQLite's result code.
      case sqlite
      /// OpenSSL's code: ERR_get_error(3).
      case openssl
      /// The operating system's error number: errno(3).
      case system
    }

    /// The library that defines the code.
    public let library: Library
    /// The number that the library returned.
    public let code: Int32
    /// The library's description of the code.
    public let text: String

    /// Creates an underlying error.
    public init(_ library: Library, code: Int32, text: String) {
      self.library = library
      self.code = code
      self.text = text
    }

    /// The library, code and text: `curl 7: Couldn't connect to server`.
    public var description: String { "\(library.rawValue) \(code): \(text)" }
  }

  /// The response of `unexpectedStatus`.
  private struct Answer: Sendable {
    let status: Int
    let body: [UInt8]
  }

  /// The properties of an error, in one object, so that an error has the size of one reference. The frames of
  /// all functions that may throw have room for an error, but errors are rare. The getters of `NetOptError`
  /// describe the properties.
  private final class Storage: Sendable {
    let code: Code
    let phase: Phase
    let message: String
    let endpoint: IPEndpoint?
    let underlying: Underlying?
    let isRetryable: Bool
    let route: RouteReport?
    let otherAttempts: [AttemptReport]
    let answer: Answer?
    let cause: (any Error)?

    init(
      _ code: Code, _ phase: Phase, _ message: String, _ endpoint: IPEndpoint?, _ underlying: Underlying?,
      _ isRetryable: Bool, _ route: RouteReport?, _ otherAttempts: [AttemptReport],
      _ answer: Answer? = nil, _ cause: (any Error)? = nil
    ) {
      self.code = code
      self.phase = phase
      self.message = message
      self.endpoint = endpoint
      self.underlying = underlying
      self.isRetryable = isRetryable
      self.route = route
      self.otherAttempts = otherAttempts
      self.answer = answer
      self.cause = cause
    }
  }

  private let storage: Storage

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: the kind of failure.
  ///   - phase: the phase of the call in which the failure happened.
  ///   - message: one sentence that names what failed and says what to do. Must not contain a secret.
  ///   - endpoint: the endpoint that failed; `nil` if the failure belongs to no endpoint.
  ///   - underlying: the error of the C library or the system, if there is one.
  ///   - isRetryable: whether the caller may safely send the same request again, with a chance of success.
  ///   - route: the route of the call until it failed; `nil` if it failed before it had a route.
  ///   - otherAttempts: the other attempts of the call, besides the attempt that failed with this error.
  public init(
    _ code: Code, phase: Phase, _ message: String, endpoint: IPEndpoint? = nil, underlying: Underlying? = nil,
    isRetryable: Bool = false, route: RouteReport? = nil, otherAttempts: [AttemptReport] = []
  ) {
    storage = Storage(code, phase, message, endpoint, underlying, isRetryable, route, otherAttempts)
  }

  /// Creates the error of a response whose status is not 2xx.
  ///
  /// - Parameter body: the beginning of the body.
  package init(_ response: NetOptResponse, body: [UInt8]) {
    // With these statuses, the server has not processed the request. After a 503 it may have, and this
    // initializer does not know whether the request may be repeated.
    let isRetryable = [408, 425, 429].contains(response.status)
    storage = Storage(
      .unexpectedStatus, .receive, "\(response.url.brief) was answered \(response.status)", response.remote,
      nil, isRetryable, response.route, response.otherAttempts, Answer(status: response.status, body: body))
  }

  /// Creates the error of a program's own code, such as an interceptor or the closure of
  /// `ClientConfiguration.Authorization`. It passes through the client unchanged, except that the client may
  /// add what it knows of the call. netopt does not retry after it.
  ///
  /// ```swift
  /// throw NetOptError.custom("no-token", "the token service is down", underlying: error)
  /// ```
  ///
  /// - Parameters:
  ///   - code: the name of the code, such as `no-token`.
  ///   - message: what failed and what to do. Must not contain a secret. Default: `code` and the type of
  ///     `underlying`.
  ///   - underlying: the program's error, which `cause` returns.
  public static func custom(
    _ code: String, _ message: String? = nil, underlying: any Error
  ) -> NetOptError {
    NetOptError(
      Storage(
        .custom(code), .send, message ?? "\(code): \(type(of: underlying))", nil, nil, false, nil, [], nil,
        underlying))
  }

  private init(_ storage: Storage) { self.storage = storage }

  /// The kind of failure.
  public var code: Code { storage.code }
  /// The phase of the call in which the failure happened.
  public var phase: Phase { storage.phase }
  /// What failed and what to do about it. Contains no secret.
  public var message: String { storage.message }
  /// The endpoint that failed; `nil` if the failure belongs to no endpoint.
  public var endpoint: IPEndpoint? { storage.endpoint }
  /// The error of the C library or the system that caused this error; `nil` if there is none.
  public var underlying: Underlying? { storage.underlying }
  /// The error of the program's own code that led to this error: of an interceptor (`custom`), or of the stream of a
  /// request's body. Otherwise `nil`.
  public var cause: (any Error)? { storage.cause }
  /// Whether the caller may safely send the same request again, with a chance of success. False if the same
  /// failure would follow, as with an invalid URL. Also false if a server may have processed the request and
  /// the request may not be repeated (`NetOptRequest.mayBeRepeated`).
  public var isRetryable: Bool { storage.isRetryable }
  /// The route of the call until it failed, with every leg; `nil` if the call failed before it had a route.
  /// If the call made several attempts, this is the route of the attempt that failed with this error.
  public var route: RouteReport? { storage.route }
  /// The reports of the other attempts of the call, besides the attempt that failed with this error. In
  /// starting order; empty for nearly all calls.
  public var otherAttempts: [AttemptReport] { storage.otherAttempts }
  /// The status of the response, for `unexpectedStatus`; otherwise `nil`.
  public var status: Int? { storage.answer?.status }
  /// The first 64 KiB of the body of the response, for `unexpectedStatus`; otherwise `nil`. May contain
  /// secrets, so no description contains it.
  public var responseBody: [UInt8]? { storage.answer?.body }

  /// Returns a copy of the error with a route.
  package func with(route: RouteReport) -> NetOptError {
    NetOptError(
      Storage(
        code, phase, message, endpoint, underlying, isRetryable, route, otherAttempts, storage.answer,
        storage.cause))
  }

  /// Returns a copy of the error with a `cause`.
  package func with(cause: any Error) -> NetOptError {
    NetOptError(
      Storage(
        code, phase, message, endpoint, underlying, isRetryable, route, otherAttempts, storage.answer, cause))
  }

  /// Returns a copy of the error with the reports of the call's other attempts. Appends `; ` and `words` to
  /// the message, unless `words` is `nil`.
  package func with(otherAttempts: [AttemptReport], adding words: String? = nil) -> NetOptError {
    NetOptError(
      Storage(
        code, phase, words.map { "\(message); \($0)" } ?? message, endpoint, underlying, isRetryable, route,
        otherAttempts, storage.answer, storage.cause))
  }
}

extension NetOptError: CustomStringConvertible, LocalizedError {
  /// The message, followed by the underlying error in parentheses.
  public var description: String { underlying.map { "\(message) (\($0))" } ?? message }
  /// The same text, for `localizedDescription`.
  public var errorDescription: String? { description }
}

extension NetOptError: CustomReflectable {
  /// The output of `dump`: without the body of the response, which may contain secrets.
  public var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "code": code.description, "phase": phase.rawValue, "message": message, "endpoint": endpoint as Any,
        "underlying": underlying as Any, "isRetryable": isRetryable, "status": status as Any,
      ], displayStyle: .struct)
  }
}

extension NetOptError {
  /// The error of every call after the client was shut down.
  package static let shutDown = NetOptError(
    .shutDown, phase: .send, "the client has been shut down; make a new one for more requests")
}
