extension NetOptRequest {
  /// A request method (RFC 9110, section 9). Methods are case-sensitive.
  public struct Method: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral,
    CustomStringConvertible
  {
    /// The method name, as it is sent.
    public let rawValue: String

    /// Creates a method. The client checks that the name is a token when it sends the request.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Creates a method from a literal.
    public init(stringLiteral value: String) { rawValue = value }

    /// The method name, as it is sent.
    public var description: String { rawValue }

    /// Requests a representation of the resource.
    public static let get: Method = "GET"
    /// Like GET, but the response has no body.
    public static let head: Method = "HEAD"
    /// Submits data for processing.
    public static let post: Method = "POST"
    /// Creates or replaces a resource.
    public static let put: Method = "PUT"
    /// Deletes a resource.
    public static let delete: Method = "DELETE"
    /// Modifies a resource (RFC 5789).
    public static let patch: Method = "PATCH"
    /// Requests the communication options of a resource.
    public static let options: Method = "OPTIONS"
    /// Requests the received request as the content of the response.
    public static let trace: Method = "TRACE"

    /// Whether the method asks the server to change nothing: GET, HEAD, OPTIONS and TRACE (RFC 9110, section
    /// 9.2.1).
    public var isSafe: Bool { self == .get || self == .head || self == .options || self == .trace }

    /// Whether sending a request twice has the same effect as sending it once: the safe methods, PUT and
    /// DELETE (RFC 9110, section 9.2.2).
    public var isIdempotent: Bool { isSafe || self == .put || self == .delete }
  }
}
