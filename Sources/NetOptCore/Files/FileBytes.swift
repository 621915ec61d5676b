import Glibc

/// Reads and replaces whole files, and formats file names for messages. The files are those that users name,
/// and netopt's own.
package enum FileBytes {
  /// The maximum time to wait for data from a pipe, in milliseconds.
  private static let readTimeout: Int32 = 10_000

  /// Whether a text is accepted as a file name. False for a text that looks like the content of a key ring,
  /// of an OpenSSL key or of a minisign key: users sometimes give this content instead of a file name.
  package static func isName(_ text: String) -> Bool {
    !text.utf8.contains { "{\"\n\r".utf8.contains($0) } && !text.hasPrefix("-----BEGIN")
      && !(text.hasPrefix("RW") && text.utf8.count >= 56 && !text.contains("."))
  }

  /// Whether a text looks like the content of a file, such as a key, and not like a file name. A path of
  /// several folders can look like base64: with `./` before it, it does not.
  package static func isContent(_ text: String) -> Bool { !isName(text) || looksEncoded(text) }

  /// Returns a file name for messages, without secrets. Users sometimes give the content of a key, or a URL
  /// with a secret parameter, instead of a file name.
  package static func shown(_ path: String) -> String {
    guard !isContent(path) else { return "(not a file name)" }
    if let end = passphraseMark(in: path) { return path[..<end] + ":[hidden]" }
    if path.contains("://") { return HTTPURL.shown(given: path) }
    return path.utf8.contains { "=%".utf8.contains($0) } ? SecretParameters.hidden(inURL: path) : path
  }

  /// Whether a text looks like the content of a file in base64: of a key or bundle in DER, of a text in PEM
  /// form, of a key ring, or of a minisign key. Or like a `data:` URL.
  private static func looksEncoded(_ text: String) -> Bool {
    if text.hasPrefix("data:") { return true }
    // DER begins with the byte 0x30, and a length of less than 64 KiB.
    let isDER = text.hasPrefix("M") && text.utf8.dropFirst().first.map { (0x41...0x50).contains($0) } == true
    return text.utf8.count >= 40 && (isDER || ["LS0tLS1", "ey", "RW"].contains { text.hasPrefix($0) })
      && text.utf8.allSatisfy {
        ByteClass.isUnreserved($0) && $0 != UInt8(ascii: ".") || "+/= ".utf8.contains($0)
      }
  }

  /// The end of the file name in a text of the form `FILE:PASSPHRASE`, which curl accepts for certificates.
  private static func passphraseMark(in text: String) -> String.Index? {
    text.utf8.indices.first { index in
      guard text.utf8[index] == UInt8(ascii: ":") else { return false }
      let name = String(decoding: text.utf8[..<index].suffix(5), as: UTF8.self).loweredASCII
      return [".p12", ".pfx", ".pem", ".crt", ".cer", ".cert", ".key", ".der"].contains { name.hasSuffix($0) }
    }
  }

  /// Whether a path leads to a regular file, which can be read more than once.
  package static func isRegular(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  /// Reads a file that a user named. A pipe without a writer counts as empty. A pipe whose writer writes
  /// nothing for 10 s is an error.
  ///
  /// - Parameters:
  ///   - path: the path of the file.
  ///   - limit: the maximum number of useful bytes. For a larger file the function returns one byte more, so
  ///     that the caller can detect that the file is too large.
  ///   - what: what the file contains, for the message of an error: "the IP list".
  ///   - phase: the phase of the error.
  /// - Throws: `NetOptError.Code.unreadableFile`, with the file and the system's reason.
  package static func read(
    _ path: String, upTo limit: Int, as what: String, in phase: NetOptError.Phase
  ) throws(NetOptError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw failure(.unreadableFile, path, what, phase, errno) }
    defer { close(descriptor) }
    return try content(of: descriptor, path, upTo: limit, what, phase)
  }

  /// Reads a file that only netopt writes. Accepts only a regular file: a symbolic link, a pipe or another
  /// special file is an error. The parameters are those of `read`.
  ///
  /// - Returns: the content, or `nil` if the file does not exist.
  /// - Throws: the errors of `read`.
  package static func readOwn(
    _ path: String, upTo limit: Int, as what: String, in phase: NetOptError.Phase
  ) throws(NetOptError) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw errno == ELOOP
        ? notRegular(path, what, phase) : failure(.unreadableFile, path, what, phase, errno)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw notRegular(path, what, phase)
    }
    return try content(of: descriptor, path, upTo: limit, what, phase)
  }

  /// Reads an open file to its end or to one byte past the limit.
  private static func content(
    of descriptor: Int32, _ path: String, upTo limit: Int, _ what: String, _ phase: NetOptError.Phase
  ) throws(NetOptError) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while bytes.count <= limit {
      let count = Glibc.read(descriptor, &buffer, min(buffer.count, limit + 1 - bytes.count))
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, readTimeout) != 0 else {
          throw failure(.unreadableFile, path, what, phase, ETIMEDOUT)
        }
        continue
      }
      guard count >= 0 else { throw failure(.unreadableFile, path, what, phase, errno) }
      if count == 0 { break }
      bytes += buffer[..<count]
    }
    return bytes
  }

  /// Returns the error for a path of netopt's own that does not lead to a regular file.
  private static func notRegular(
    _ path: String, _ what: String, _ phase: NetOptError.Phase
  ) -> NetOptError {
    NetOptError(
      .unreadableFile, phase: phase,
      "\(what) \(shown(path)) cannot be read: it is not a regular file but a link, a pipe or similar; remove it",
      underlying: NetOptError.Underlying(.system, code: ELOOP, text: String(cString: strerror(ELOOP))))
  }

  /// Returns the error for a file that cannot be read or written.
  ///
  /// - Parameters:
  ///   - kind: `unreadableFile` or `unwritableFile`.
  ///   - code: the error number of the system (errno(3)).
  package static func failure(
    _ kind: NetOptError.Code, _ path: String, _ what: String, _ phase: NetOptError.Phase, _ code: Int32
  ) -> NetOptError {
    let reason = String(cString: strerror(code))
    let action = kind == .unreadableFile ? "read" : "written"
    return NetOptError(
      kind, phase: phase, "\(what) \(shown(path)) cannot be \(action): \(reason)",
      underlying: NetOptError.Underlying(.system, code: code, text: reason))
  }
}
