import NetOptCore
import Testing

@Suite struct SecretParametersTests {
  @Test(
    "a query hides the values of secret names, and values that contain secrets",
    arguments: [
      ("q=lamp&access_token=abc&page=2", "q=lamp&access_token=[hidden]&page=2"), ("token=", "token="),
      ("a=1&%61pi_key=abc", "a=1&%61pi_key=[hidden]"), ("%2574oken=abc", "%2574oken=[hidden]"),
      ("next=https%3A%2F%2Fb.test%2F%3Ftoken%3Dabc", "next=[hidden]"),
      ("next=%252Fa%253Ftoken%253Dabc", "next=[hidden]"), ("x=//user:abc@b.test/", "x=[hidden]"),
      ("data=%7B%22token%22%3A%22abc%22%7D", "data=[hidden]"), ("data={'apiKey' : 'abc'}", "data=[hidden]"),
      ("token%3Dabc&q=1", "[hidden]&q=1"),
      ("refreshToken=a&X-Amz-Signature=b", "refreshToken=[hidden]&X-Amz-Signature=[hidden]"),
      ("code=abc&auth=b&key=c&sig=d", "code=[hidden]&auth=[hidden]&key=[hidden]&sig=[hidden]"),
      ("q=Bearer%20abc&r=basic%20abc", "q=[hidden]&r=[hidden]"), ("q=eyJhbGciOi.eyJzdWIi.c2ln", "q=[hidden]"),
      ("q=Bearer+abc&r=Basic+abc", "q=[hidden]&r=[hidden]"),
      ("q=eyJhY2Nlc3NfdG9rZW4iOiJhIn0%3D", "q=[hidden]"),
      ("q=token:abc", "q=[hidden]"), ("q=token>abc", "q=[hidden]"), ("to=user:abc@b.test", "to=[hidden]"),
      ("to=https:user:abc@b.test", "to=[hidden]"),
      ("device_code=a&cred=b", "device_code=[hidden]&cred=[hidden]"),
    ])
  func secretValues(_ query: String, _ shown: String) {
    #expect(SecretParameters.hidden(inQuery: query) == shown)
  }

  /// The words of a name that suggests a secret. The test joins them in all common notations.
  @Test(
    "a secret name is recognized in snake, kebab, dotted and camel case",
    arguments: [
      ["auth", "key"], ["app", "key"], ["private", "key"], ["pass", "code"], ["psk"], ["wifi", "psk"],
      ["creds"],
      ["aws", "creds"], ["code", "verifier"], ["totp"], ["totp", "code"], ["dsn"], ["sentry", "dsn"],
      ["connection", "string"], ["db", "connection", "string"],
    ])
  func notations(_ words: [String]) {
    let capitals = words.map { $0.prefix(1).uppercased() + $0.dropFirst() }
    var names = ["_", "-", "."].flatMap { [words.joined(separator: $0), capitals.joined(separator: $0)] }
    names += [words[0] + capitals.dropFirst().joined(), capitals.joined()]
    // In a name without separators or capitals, `psk` and `dsn` may be parts of harmless words, such as
    // `upskill` and `kidsname`. So such names do not match.
    if !["psk", "dsn"].contains(words.last) { names += [words.joined(), words.joined().uppercased()] }
    for name in names {
      #expect(SecretParameters.hidden(inQuery: "a=1&\(name)=abc") == "a=1&\(name)=[hidden]")
    }
  }

  /// Queries whose values an operator needs to see, although some names or values resemble secrets.
  @Test(
    "a query shows values that do not suggest secrets",
    arguments: [
      "keyword=lamp&country_code=de&zipcode=1&language_code=en",
      "author=x&side=left&shipping=1&design=2&passengers=3&monkey=4",
      "connection=close&string=x&verifier=a&kidsname=b&upskill=c&codes=d&total=1&encode=1",
      "next=https%3A%2F%2Fb.test%2F%3Fq%3D1", "time=12:30&mail=a@b.test&url=https://b.test/x@2x.png",
      "data=%7B%22page%22%3A1%7D",
      "=&&a&=b", "q=%", "",
    ])
  func otherValues(_ query: String) {
    #expect(SecretParameters.hidden(inQuery: query) == query)
  }

  @Test(
    "a URL hides secrets in its path and query, credentials and the fragment",
    arguments: [
      ("https://a.test/x;jsessionid=abc/y?q=1", "https://a.test/x;jsessionid=[hidden]/y?q=1"),
      ("https://a.test/p/https://user:abc@b.test/x", "https://a.test/p/https://…@b.test/x"),
      ("https://a.test/p//u:a@b@c//d@e/f", "https://a.test/p//…@c//…@e/f"),
      ("https://a.test/@x//y/z@2x.png", "https://a.test/@x//y/z@2x.png"),
      ("https://a.test/keys/keyword?q=1", "https://a.test/keys/keyword?q=1"),
      ("https://a.test/p/https%3A%2F%2Fb.test%2F%3Ftoken%3Dabc/x", "https://a.test/p/[hidden]/x"),
      ("https://auth.a.test:8443/?q=1#access_token=abc", "https://auth.a.test:8443/?q=1#…"),
      ("https://token:8443/token:8443", "https://token:8443/[hidden]"), ("key:1", "key:1"),
      ("key:1;key=2", "key:1;key=[hidden]"), ("https://token:x/", "https://[hidden]/"),
    ])
  func ofURLs(_ url: String, _ shown: String) {
    #expect(SecretParameters.hidden(inURL: url) == shown)
  }
}
