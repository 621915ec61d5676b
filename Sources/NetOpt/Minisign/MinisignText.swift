import FoundationEssentials
import NetOptCore
import NetOptCrypto

/// The lines of a minisign file. The reader is strict: an unknown or malformed line is an error.
struct MinisignText {
  /// The maximum size of a minisign file in bytes. It leaves room for two comments of 4,096 bytes.
  static let maximumBytes = 16 * 1024

  /// The name of the file in messages.
  private let file: String
  /// The error code of the errors that `fault` makes.
  private let code: NetOptError.Code
  /// The lines without line ends, and without empty lines at the end.
  private(set) var lines: [Substring]

  /// Splits a file into lines.
  ///
  /// - Parameters:
  ///   - file: the name of the file in messages.
  ///   - code: the error code of the errors about this file.
  init(_ bytes: [UInt8], file: String, code: NetOptError.Code) throws(NetOptError) {
    self.file = file
    self.code = code
    lines = []
    if bytes.count > Self.maximumBytes { throw fault("it is larger than \(Self.maximumBytes) bytes") }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw fault("it is not UTF-8 text") }
    // The text is split by scalars, because Swift takes a carriage return with a line feed for one
    // `Character`.
    lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      Substring(line.last == "\r" ? line.dropLast() : line)
    }
    while lines.last?.isEmpty == true { lines.removeLast() }
    let isControl = { (scalar: Unicode.Scalar) in
      scalar != "\t" && scalar.properties.generalCategory == .control
    }
    if lines.contains(where: { $0.unicodeScalars.contains(where: isControl) }) {
      throw fault("it has a control character")
    }
  }

  /// Makes an error about the file.
  ///
  /// - Parameter rule: what is wrong with the file, for the message.
  func fault(_ rule: String) -> NetOptError { NetOptError(code, phase: .list, "\(file): \(rule)") }

  /// Checks that the file has exactly `count` lines.
  ///
  /// - Parameter what: the kind of file, for the message.
  func expect(_ count: Int, _ what: String) throws(NetOptError) {
    guard lines.count == count else {
      throw fault("\(what) has \(count) lines, but this file has \(lines.count)")
    }
  }

  /// Returns the text of a line after a prefix, which the line must have.
  ///
  /// - Parameter index: the index of the line, from 0.
  func comment(_ index: Int, after prefix: String) throws(NetOptError) -> String {
    guard lines[index].hasPrefix(prefix) else {
      throw fault("line \(index + 1) must begin with \"\(prefix)\"")
    }
    return String(lines[index].dropFirst(prefix.count))
  }

  /// Decodes a line that is base64 (RFC 4648, section 4) with padding and has no other characters.
  ///
  /// - Parameters:
  ///   - index: the index of the line, from 0.
  ///   - count: the number of bytes that the decoded line must have.
  ///   - what: what the line must be, for the message.
  func base64(_ index: Int, count: Int, _ what: String) throws(NetOptError) -> [UInt8] {
    let text = String(lines[index])
    guard let data = Data(base64Encoded: text), data.base64EncodedString() == text else {
      throw fault("line \(index + 1) must be \(what) in base64")
    }
    guard data.count == count else {
      throw fault("line \(index + 1) has \(data.count) bytes in base64, but \(what) has \(count)")
    }
    return Array(data)
  }

  /// The prefix of the first line in every kind of minisign file.
  static let untrusted = "untrusted comment: "
  /// The prefix of the third line of a signature file.
  static let trusted = "trusted comment: "
  /// The two bytes with which a decoded key begins. A decoded signature of the file itself (`legacy`) begins
  /// with them too.
  static let ed25519 = Array("Ed".utf8)
  /// The two bytes with which a decoded signature of the file's BLAKE2b-512 digest begins (`prehashed`).
  static let prehashed = Array("ED".utf8)

  /// The key id as minisign shows it: the 8 bytes as a little-endian number in hexadecimal.
  static func name(ofKey id: [UInt8]) -> String {
    id.reversed().map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
  }
}

/// Runs a closure that uses libcrypto. Turns every error that the closure throws into a `NetOptError` of the
/// phase `list`. An error that already is a `NetOptError` does not change.
func withListErrors<Result>(_ body: () throws -> Result) throws(NetOptError) -> Result {
  do {
    return try body()
  } catch let error as CryptoError {
    throw error.netOptError(in: .list)
  } catch let error as NetOptError {
    throw error
  } catch {
    throw NetOptError(.libraryFailed, phase: .list, "\(error)")
  }
}
