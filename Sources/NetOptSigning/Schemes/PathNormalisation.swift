/// Removes dot segments and empty segments from a path, as AWS does. The result differs from RFC 3986,
/// section 5.2.4, for a path that ends with a dot segment: `/a/.` becomes `/a`, not `/a/`.
enum PathNormalisation {
  /// Returns the normalised path. It begins with "/".
  static func normalised(_ path: String) -> String {
    var kept: [Substring.UTF8View] = []
    for segment in path.utf8.split(separator: 0x2f) where !segment.elementsEqual(".".utf8) {
      if segment.elementsEqual("..".utf8) { _ = kept.popLast() } else { kept.append(segment) }
    }
    let joined = kept.map { String(Substring($0)) }.joined(separator: "/")
    return "/" + joined + (path.utf8.last == 0x2f && !kept.isEmpty ? "/" : "")
  }
}
