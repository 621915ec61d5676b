import NetOptCaching
import Testing

struct CacheKeyTests {
  @Test func isTheMD5OfNameAndParameters() throws {
    // printf 'catalog/live/item\0q=lamp&page=1' | md5sum
    let key = try CacheKey(api: "catalog/live/item", parameters: "q=lamp&page=1")
    let hexadecimal = key.digest.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    #expect(hexadecimal == "7e8a5e07a8075743aa6b56009368d40a")
    #expect(MD5Digest(key.digest.bytes) == key.digest)
  }

  @Test func isAnotherInAnotherPartition() throws {
    let mine = try CacheKey(api: "item", parameters: "", partition: "a")
    #expect(mine != (try CacheKey(api: "item", parameters: "", partition: "b")))
    #expect(mine == (try CacheKey(api: "item", parameters: "", partition: "a")))
  }
}
