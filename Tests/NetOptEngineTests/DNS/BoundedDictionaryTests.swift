import Testing

@testable import NetOptEngine

@Suite struct BoundedDictionaryTests {
  @Test("a dictionary with a limit of 10 keeps the last 5 entries, and never more than 10")
  func keepsRecentEntries() {
    var dictionary = BoundedDictionary<Int, Int>(limit: 10)
    for key in 0..<100 {
      dictionary.store(key * 2, for: key)
      #expect(dictionary.count <= 10)
      for recent in max(0, key - 4)...key { #expect(dictionary.value(for: recent) == recent * 2) }
    }
    #expect(dictionary.value(for: 50) == nil)
  }

  @Test("an entry that is read after each store stays in the dictionary")
  func keepsReadEntries() {
    var dictionary = BoundedDictionary<Int, Int>(limit: 10)
    dictionary.store(-1, for: -1)
    for key in 0..<100 {
      dictionary.store(key, for: key)
      #expect(dictionary.value(for: -1) == -1)
    }
  }

  @Test("storing a key again replaces its value in either generation")
  func replacesValues() {
    var dictionary = BoundedDictionary<Int, Int>(limit: 4)
    for key in 0..<3 { dictionary.store(0, for: key) }
    // A generation has room for two entries, half of the limit. Keys 0 and 1 are now in the older generation,
    // and key 2 is in the recent one.
    for key in 0..<3 { dictionary.store(1, for: key) }
    #expect(dictionary.value(for: 2) == 1)
    #expect(dictionary.value(for: 1) == 1)
    #expect(dictionary.count <= 4)
  }

  @Test("an empty dictionary has no value for a key")
  func emptyDictionary() {
    var dictionary = BoundedDictionary<String, Int>(limit: 2)
    #expect(dictionary.value(for: "a") == nil)
    #expect(dictionary.count == 0)
  }
}
