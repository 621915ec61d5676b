import NetOptCaching
import NetOptCore
import Testing

struct CacheKeyTests {
  @Test("the digest of a key is the MD5 of name and parameters")
  func digest() throws {
    // printf 'catalog/live/item\0q=lamp&page=1' | md5sum
    let key = try CacheKey(api: "catalog/live/item", parameters: "q=lamp&page=1")
    let hexadecimal = key.digest.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    #expect(hexadecimal == "7e8a5e07a8075743aa6b56009368d40a")
    #expect(MD5Digest(key.digest.bytes) == key.digest)
  }

  @Test("keys of different partitions differ")
  func partitions() throws {
    let mine = try CacheKey(api: "item", parameters: "", partition: "a")
    #expect(mine != (try CacheKey(api: "item", parameters: "", partition: "b")))
    #expect(mine == (try CacheKey(api: "item", parameters: "", partition: "a")))
  }

  @Test("keys differ when their bytes differ, even if Swift considers the strings equal")
  func bytesCount() throws {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
    #expect(composed == decomposed)
    let keys = try [
      CacheKey(api: "a", parameters: "", partition: composed),
      CacheKey(api: "a", parameters: "", partition: decomposed),
      CacheKey(api: composed, parameters: ""), CacheKey(api: decomposed, parameters: ""),
    ]
    for (index, key) in keys.enumerated() {
      #expect(keys.indices.filter { keys[$0] == key } == [index])
    }
    #expect(Set(keys).count == 4)
    // More pairs of strings that are equal in Swift: the letter K and the Kelvin sign; two accents in both
    // orders, which gives the same number of bytes; the semicolon and the Greek question mark.
    for (one, other) in [("K", "\u{212a}"), ("a\u{323}\u{307}", "a\u{307}\u{323}"), (";", "\u{37e}")] {
      #expect(one == other && one.hasSameBytes(as: one) && !one.hasSameBytes(as: other))
      #expect(
        HeaderField("A", one) != HeaderField("A", other) && HeaderField("A", one) == HeaderField("A", one))
    }
  }
}
