/// What went wrong, where, and what to do about it. Everything in netopt that throws throws this.
public struct NetOptError: Error, Sendable {
  /// The kind of failure. New kinds may be added: a `switch` over codes needs a default.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Kind: String {
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
      case noAuthorities = "no-authorities"
      case sendFailed = "send-failed"
      case receiveFailed = "receive-failed"
      case protocolViolation = "protocol-violation"
      case decodeFailed = "decode-failed"
      case headTooLarge = "head-too-large"
      case bodyTooLarge = "body-too-large"
      case tooManyRedirects = "too-many-redirects"
      case unsupported
      case libraryFailed = "library-failed"
      case signingFailed = "signing-failed"
    }

    private let kind: Kind
    private init(_ kind: Kind) { self.kind = kind }

    /// A stable name, as JSON output carries it.
    public var description: String { kind.rawValue }

    /// The URL is not one that can be requested.
    public static let invalidURL = Code(.invalidURL)
    /// Method, header or body of the request cannot be sent.
    public static let invalidRequest = Code(.invalidRequest)
    /// A setting of the client makes no sense or names something that does not exist.
    public static let invalidConfiguration = Code(.invalidConfiguration)
    /// The IP list breaks a rule.
    public static let invalidList = Code(.invalidList)
    /// A signature is missing, malformed, or not by a trusted key.
    public static let invalidSignature = Code(.invalidSignature)
    /// A key is malformed, damaged, or its password is wrong.
    public static let invalidKey = Code(.invalidKey)
    /// The key ring breaks a rule.
    public static let invalidKeys = Code(.invalidKeys)
    /// A file could not be read.
    public static let unreadableFile = Code(.unreadableFile)
    /// A file could not be written. What was there before is as it was.
    public static let unwritableFile = Code(.unwritableFile)
    /// The task was cancelled, or the response was let go before its end.
    public static let cancelled = Code(.cancelled)
    /// A time limit passed.
    public static let timeout = Code(.timeout)
    /// The client has been shut down.
    public static let shutDown = Code(.shutDown)
    /// DNS knows no address for the name.
    public static let nameNotFound = Code(.nameNotFound)
    /// No name server gave an answer.
    public static let resolverFailed = Code(.resolverFailed)
    /// No connection could be opened.
    public static let connectFailed = Code(.connectFailed)
    /// The proxy failed, refused the connection, or could not connect to the server.
    public static let proxyFailed = Code(.proxyFailed)
    /// The TLS handshake failed.
    public static let tlsFailed = Code(.tlsFailed)
    /// The certificate is for another name.
    public static let certificateName = Code(.certificateName)
    /// The certificate is not signed by a trusted authority.
    public static let certificateUntrusted = Code(.certificateUntrusted)
    /// The certificate has expired or is not yet valid.
    public static let certificateExpired = Code(.certificateExpired)
    /// The authorities to trust cannot be read: the file that a setting names, or this machine's own.
    public static let noAuthorities = Code(.noAuthorities)
    /// The connection failed while the request was being sent, or before an answer began.
    public static let sendFailed = Code(.sendFailed)
    /// The connection failed while the response was being received.
    public static let receiveFailed = Code(.receiveFailed)
    /// The server broke the rules of HTTP.
    public static let protocolViolation = Code(.protocolViolation)
    /// The body's content coding is broken.
    public static let decodeFailed = Code(.decodeFailed)
    /// The response's head, with interim responses and trailers, is larger than 256 KiB, or a part of it is larger than libcurl takes.
    public static let headTooLarge = Code(.headTooLarge)
    /// The body is larger than the limit that was set for it.
    public static let bodyTooLarge = Code(.bodyTooLarge)
    /// There were more redirects than the request allows.
    public static let tooManyRedirects = Code(.tooManyRedirects)
    /// The libraries on this machine cannot do what was asked for.
    public static let unsupported = Code(.unsupported)
    /// A C library failed in a way that has no name of its own here; `underlying` has its code.
    public static let libraryFailed = Code(.libraryFailed)
    /// The request could not be signed: the key is not for it, or something that is to be signed is not there.
    public static let signingFailed = Code(.signingFailed)
  }

  /// The part of a call in which the failure happened.
  public enum Phase: String, Hashable, Sendable {
    /// Reading the IP list.
    case list
    /// Parsing the URL and finding addresses.
    case resolve
    /// Opening the TCP connection.
    case connect
    /// The TLS handshake.
    case tls
    /// Sending the request.
    case send
    /// Receiving the response.
    case receive
    /// Decoding the body.
    case decode
    /// Signing.
    case sign
    /// The response cache.
    case cache
  }

  /// The code of the C library underneath.
  public struct Underlying: Hashable, Sendable, CustomStringConvertible {
    /// Whose code it is.
    public enum Library: String, Hashable, Sendable {
      /// libcurl's `CURLcode` or `CURLMcode`: libcurl-errors(3).
      case curl
      /// c-ares's status: ares_strerror(3).
      case ares
      /// SQLite's result code.
      case sqlite
      /// OpenSSL's code: ERR_get_error(3).
      case openssl
      /// errno(3).
      case system
    }

    /// Whose code it is.
    public let library: Library
    /// The code.
    public let code: Int32
    /// What the library says of it.
    public let text: String

    /// Makes a code.
    public init(_ library: Library, code: Int32, text: String) {
      self.library = library
      self.code = code
      self.text = text
    }

    /// `curl 7: Couldn't connect to server`.
    public var description: String { "\(library.rawValue) \(code): \(text)" }
  }

  /// An error is rare and thrown through many frames: it is one reference wide.
  private final class Storage: Sendable {
    let code: Code
    let phase: Phase
    let message: String
    let endpoint: IPEndpoint?
    let underlying: Underlying?
    let isRetryable: Bool
    let route: RouteReport?
    let otherAttempts: [AttemptReport]

    init(
      _ code: Code, _ phase: Phase, _ message: String, _ endpoint: IPEndpoint?, _ underlying: Underlying?,
      _ isRetryable: Bool, _ route: RouteReport?, _ otherAttempts: [AttemptReport]
    ) {
      self.code = code
      self.phase = phase
      self.message = message
      self.endpoint = endpoint
      self.underlying = underlying
      self.isRetryable = isRetryable
      self.route = route
      self.otherAttempts = otherAttempts
    }
  }

  private let storage: Storage

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: the kind of failure.
  ///   - phase: the part of the call in which it happened.
  ///   - message: one sentence that names what failed and says what to do; never a secret.
  ///   - endpoint: the endpoint at which it failed.
  ///   - underlying: the code of the C library that failed.
  ///   - isRetryable: whether the same request may well succeed later or elsewhere, and may be sent again.
  ///   - route: the way that the request took.
  ///   - otherAttempts: the call's attempts before the one that failed with this error.
  public init(
    _ code: Code, phase: Phase, _ message: String, endpoint: IPEndpoint? = nil, underlying: Underlying? = nil,
    isRetryable: Bool = false, route: RouteReport? = nil, otherAttempts: [AttemptReport] = []
  ) {
    storage = Storage(code, phase, message, endpoint, underlying, isRetryable, route, otherAttempts)
  }

  /// The kind of failure.
  public var code: Code { storage.code }
  /// The part of the call in which it happened.
  public var phase: Phase { storage.phase }
  /// What failed, and what to do.
  public var message: String { storage.message }
  /// The endpoint at which it failed.
  public var endpoint: IPEndpoint? { storage.endpoint }
  /// The C library's code.
  public var underlying: Underlying? { storage.underlying }
  /// Whether the same request may be sent again and may then succeed.
  public var isRetryable: Bool { storage.isRetryable }
  /// The way the call took until it failed, with every connection that was tried: of its last attempt, when it made more
  /// than one.
  public var route: RouteReport? { storage.route }
  /// The call's attempts that ended otherwise than with this error, in the order in which they began. Empty for nearly
  /// all calls.
  public var otherAttempts: [AttemptReport] { storage.otherAttempts }

  /// The same error with the way the call took.
  package func with(route: RouteReport) -> NetOptError {
    NetOptError(
      code, phase: phase, message, endpoint: endpoint, underlying: underlying, isRetryable: isRetryable,
      route: route, otherAttempts: otherAttempts)
  }

  /// The same error with the other attempts of its call, and with something more to say.
  package func with(otherAttempts: [AttemptReport], adding words: String? = nil) -> NetOptError {
    NetOptError(
      code, phase: phase, words.map { "\(message); \($0)" } ?? message, endpoint: endpoint,
      underlying: underlying, isRetryable: isRetryable, route: route, otherAttempts: otherAttempts)
  }
}

extension NetOptError: CustomStringConvertible {
  /// The message, with the library's code behind it.
  public var description: String { underlying.map { "\(message) (\($0))" } ?? message }
}

extension NetOptError {
  /// What calls get after the client's end.
  package static let shutDown = NetOptError(
    .shutDown, phase: .send, "the client has been shut down; make a new one for more requests")
}
