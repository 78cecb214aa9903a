import Testing

@testable import Transfer

/// What a server proposes as a file's name (RFC 6266, section 5 and what servers do).
@Suite struct ContentDispositionTests {
  @Test(
    arguments: [
      ("Attachment; filename=example.html", "example.html"),
      ("INLINE; FILENAME= \"an example.html\"", "an example.html"),
      ("attachment; filename*= UTF-8''%e2%82%ac%20rates", "€ rates"),
      ("attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates", "€ rates"),
      ("attachment; filename*=utf-8''%e2%82%ac%20rates; filename=\"EURO rates\"", "€ rates"),
      ("attachment; filename=\"a\\\"b\\\\c\"", "a\"b\\c"), ("attachment; filename=\"semi;colon\"", "semi;colon"),
      ("attachment; filename*=ISO-8859-1'en'%A3%20rates", "£ rates"),
      ("attachment; filename=\"naïve.txt\"", "naïve.txt"),
      ("attachment; filename=my file.txt", "my file.txt"), ("attachment; filename=a.txt;", "a.txt"),
      ("attachment; foo=bar; filename=a", "a"), ("filename=\"a b.txt\"", "a b.txt"),
      ("attachment; filename*=utf8''%e2%82%ac", "€"), ("attachment; filename=\"%41\"", "%41"),
      // What cannot be read does not count.
      ("attachment; filename*=UTF-8''%ff; filename=a", "a"), ("attachment; filename*=UTF-8''%4; filename=a", "a"),
      ("attachment; filename*=KOI8-R''x; filename=a", "a"), ("attachment; filename*=x; filename=a", "a"),
    ])
  func name(field: String, name: String) {
    #expect(ContentDisposition(field)?.filename.map { Array($0.utf8) } == Array(name.utf8))
  }

  @Test(arguments: ["attachment", "inline; a=b", "attachment; filename*=UTF-8''%ff"])
  func noName(field: String) {
    let read = ContentDisposition(field)
    #expect(read != nil && read?.filename == nil)
  }

  @Test(
    arguments: [
      "", ";", "\"attachment\"; filename=a", "attachment; filename", "attachment; filename=", "attachment filename=a",
      "attachment; filename=a; filename=b", "attachment; filename=a; FILENAME=b", "attachment; filename=\"a",
      "attachment; filename=\"a\\", "attachment; =a", "attachment; filename=\"a\"b", "=a", "attachment; ; filename=a",
    ])
  func noField(field: String) { #expect(ContentDisposition(field) == nil) }
}
