import Dispatch
import Foundation
import FoundationNetworking
import Glibc
import NetOpt

/// The body of a task's request, as the program gave it.
enum UploadBody: @unchecked Sendable {
  // Unchecked: one reader at a time uses a stream. Foundation does not touch it, and the program has given it
  // away.

  case none
  case bytes([UInt8])
  case file(URL)
  /// A stream that can be read once.
  case stream(InputStream)
  /// The delegate provides a stream each time the request is sent.
  case delegateStream

  /// Finds the body.
  ///
  /// - Parameters:
  ///   - known: Foundation's body of the task, which also has the data or file of an upload task; `nil` if it
  ///     was not found.
  ///   - request: the request of the task.
  init(known: Any?, request: URLRequest?) {
    guard let known else {
      self.init(request)
      return
    }
    let optional = Mirror(reflecting: known)
    let body: Any? = optional.displayStyle == .optional ? optional.children.first?.value : known
    // Upload tasks with a streamed request have no body in advance.
    guard let body else {
      self = .delegateStream
      return
    }
    switch Mirror(reflecting: body).children.first?.value {
    case let data as DispatchData:
      // Empty data has no address. Iterating over the bytes takes much longer than copying them.
      self = .bytes(
        data.isEmpty
          ? [] : data.withUnsafeBytes { Array(UnsafeBufferPointer<UInt8>(start: $0, count: data.count)) })
    case let file as URL: self = .file(file)
    case let stream as InputStream: self = .stream(stream)
    default: self.init(request)
    }
  }

  private init(_ request: URLRequest?) {
    if let data = request?.httpBody, !data.isEmpty {
      self = .bytes(Array(data))
    } else if let stream = request?.httpBodyStream {
      self = .stream(stream)
    } else {
      self = .none
    }
  }

  var isNone: Bool { if case .none = self { true } else { false } }

  /// Makes the body that netopt sends.
  ///
  /// - Parameter length: the length that the program announces for a stream, in bytes; `nil` if unknown.
  /// - Throws: `URLError` with the codes of Foundation for a file that cannot be read.
  func requestBody(length: Int64?) throws -> RequestBody {
    switch self {
    case .none, .delegateStream: return .none
    case .bytes(let bytes): return .bytes(bytes)
    case .stream(let stream): return .stream(length: length, InputStreamChunks(stream))
    case .file(let url):
      do throws(NetOptError) { return try .file(url.path) } catch {
        throw URLError(Self.code(ofUnreadable: url.path), userInfo: [NSUnderlyingErrorKey: error])
      }
    }
  }

  private static func code(ofUnreadable path: String) -> URLError.Code {
    if access(path, R_OK) == 0 { return .unknown }
    return errno == EACCES || errno == EPERM ? .noPermissionsToReadFile : .fileDoesNotExist
  }
}
