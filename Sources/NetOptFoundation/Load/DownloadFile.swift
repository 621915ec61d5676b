import Foundation
import FoundationNetworking
@_spi(Reflection) import Swift

/// The file of a download task. It is deleted unless it is handed over.
final class DownloadFile {
  private let url: URL
  private let handle: FileHandle
  /// The number of bytes in the file.
  private(set) var count: Int64 = 0

  /// Creates the file, in the directory for temporary files.
  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + ".tmp")
    guard
      FileManager.default.createFile(
        atPath: url.path, contents: nil, attributes: [.posixPermissions: 0o600])
    else { throw URLError(.cannotCreateFile) }
    do { handle = try FileHandle(forWritingTo: url) } catch { throw URLError(.cannotOpenFile) }
  }

  func append(_ chunk: [UInt8]) throws {
    do { try handle.write(contentsOf: chunk) } catch {
      throw URLError(.cannotWriteToFile, userInfo: [NSUnderlyingErrorKey: error])
    }
    count += Int64(chunk.count)
  }

  /// Closes the file, and leaves it to the task, whose program moves or deletes it.
  func hand(over urlProtocol: URLProtocol) throws {
    try? handle.close()
    guard Self.store(url, in: urlProtocol) else {
      throw URLError(
        .cannotCreateFile,
        userInfo: [NSLocalizedDescriptionKey: "this version of Foundation gives downloads no file"])
    }
  }

  func discard() {
    try? handle.close()
    try? FileManager.default.removeItem(at: url)
  }

  /// Whether the installed Foundation takes the file of a download.
  static var isKnown: Bool { properties != nil }

  /// Sets the property of a protocol instance in which Foundation expects the file. Foundation has no public
  /// way: with other protocols than its own, it finds no file and ends the process.
  ///
  /// - Returns: whether the class has the property.
  private static func store(_ url: URL, in urlProtocol: URLProtocol) -> Bool {
    guard let properties else { return false }
    // Unsafe: the offset and the type of the stored property come from the metadata of the class itself, and
    // `store` writes only a value of this type. The task's work queue, on which this runs, is the only one
    // that uses the property.
    let start = Unmanaged.passUnretained(urlProtocol).toOpaque()
    return properties.type.store(url, named: "temporaryFileURL", at: start + properties.offset)
  }

  /// The option of `_forEachField` for classes, whose own constant is a variable.
  private static var ofClass: _EachFieldOptions { _EachFieldOptions(rawValue: 1) }

  /// The stored property `properties` of `URLProtocol`; `nil` if there is none, or one of another type.
  // Unsafe: a number and a type, which never change. Types of protocols are not Sendable.
  private nonisolated(unsafe) static let properties: (offset: Int, type: any PropertyDictionary.Type)? = {
    var found: (Int, any PropertyDictionary.Type)?
    _forEachField(of: URLProtocol.self, options: ofClass) { name, offset, type, _ in
      guard String(cString: name) == "properties" else { return true }
      found = (type as? any PropertyDictionary.Type).map { (offset, $0) }
      return false
    }
    return found
  }()
}

/// The type of the dictionary `properties`, whose keys Foundation does not publish.
private protocol PropertyDictionary {
  /// Stores a value in the dictionary at an address.
  ///
  /// - Returns: whether the dictionary has such a key.
  static func store(_ value: Any, named name: String, at address: UnsafeMutableRawPointer) -> Bool
}

extension Dictionary: PropertyDictionary
where Key: RawRepresentable, Key.RawValue == String, Value == Any {
  fileprivate static func store(
    _ value: Any, named name: String, at address: UnsafeMutableRawPointer
  ) -> Bool {
    guard let key = Key(rawValue: name) else { return false }
    address.assumingMemoryBound(to: Self.self).pointee[key] = value
    return true
  }
}
