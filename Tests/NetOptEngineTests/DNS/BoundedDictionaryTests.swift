import Testing

@testable import NetOptEngine

@Suite struct BoundedDictionaryTests {
  @Test func keepsWhatWasStoredLast() {
    var dictionary = BoundedDictionary<Int, Int>(limit: 10)
    for key in 0..<100 {
      dictionary.store(key * 2, for: key)
      #expect(dictionary.count <= 10)
      for recent in max(0, key - 4)...key { #expect(dictionary.value(for: recent) == recent * 2) }
    }
    #expect(dictionary.value(for: 50) == nil)
  }

  @Test func keepsWhatIsRead() {
    var dictionary = BoundedDictionary<Int, Int>(limit: 10)
    dictionary.store(-1, for: -1)
    for key in 0..<100 {
      dictionary.store(key, for: key)
      #expect(dictionary.value(for: -1) == -1)
    }
  }

  @Test func storingAgainReplacesWhereverTheKeyIs() {
    var dictionary = BoundedDictionary<Int, Int>(limit: 4)
    for key in 0..<3 { dictionary.store(0, for: key) }
    // 0 and 1 are of the older generation by now.
    for key in 0..<3 { dictionary.store(1, for: key) }
    #expect(dictionary.value(for: 2) == 1)
    #expect(dictionary.value(for: 1) == 1)
    #expect(dictionary.count <= 4)
  }

  @Test func reportsNoValueForWhatWasNeverStored() {
    var dictionary = BoundedDictionary<String, Int>(limit: 2)
    #expect(dictionary.value(for: "a") == nil)
    #expect(dictionary.count == 0)
  }
}
