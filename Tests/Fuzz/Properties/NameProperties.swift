internal import Spool

func checkName(_ bytes: [UInt8]) throws(Violation) {
  let name = FileName(bytes)
  try require(!hasControls(name.display), "a name that steers a terminal")
  try require(unescaped(name.display) == bytes, "a name that is shown as another's")
  if let job = JobName(name) {
    try checkAccepted(job)
    try require(job.fileName == name, "a job's name is changed")
    for number in [2, 10_000] {
      let numbered = job.numbered(number)
      try checkAccepted(numbered)
      try require(JobName(numbered.fileName) == numbered, "a number makes a name invalid")
    }
    let owner = WorkerID(host: "alpha", process: .max, tag: .max)
    let claimed = ClaimName.fileName(job, owner)
    let claim = ClaimName(claimed)
    try require(claimed.bytes.count <= 255, "a claim's name is too long")
    try require(claim?.job == job && claim?.owner?.text == owner.text, "a claim is read back as another's")
  }
  if let claim = ClaimName(name) {
    try checkAccepted(claim.job)
    if let owner = claim.owner?.text, let host = claim.owner?.host {
      try require(owner.utf8.starts(with: host.utf8), "a host that is not its owner's")
      // An owner's name that is no UTF-8 is shown with U+FFFD.
      if !owner.unicodeScalars.contains("\u{FFFD}") {
        try require(claim.job.fileName.bytes + Array(":\(owner)".utf8) == bytes, "a claim's name is changed")
      }
    } else {
      try require(claim.job.fileName == name && claim.owner == nil, "an owner of no claim")
    }
  }
}

private func checkAccepted(_ job: JobName) throws(Violation) {
  let bytes = job.fileName.bytes
  try require((1...JobName.maximumLength).contains(bytes.count), "a job's name of \(bytes.count) bytes")
  try require(bytes.first != 0x2E, "a job's name with a leading dot")
  try require(!bytes.contains { $0 < 0x20 || $0 == 0x2F || $0 == 0x7F }, "a job's name with a slash or controls")
  try require(bytes.suffix(5) != Array(".part".utf8)[...], "a job's name that is data's")
}

/// What was escaped: `\xNN` is a byte, all else stands for itself. Nil if a backslash does not begin such an escape.
private func unescaped(_ text: String) -> [UInt8]? {
  var result: [UInt8] = []
  var rest = Array(text.utf8)[...]
  while let byte = rest.popFirst() {
    guard byte == UInt8(ascii: "\\") else {
      result.append(byte)
      continue
    }
    guard rest.popFirst() == UInt8(ascii: "x"), rest.count >= 2,
      let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
    else { return nil }
    rest = rest.dropFirst(2)
    result.append(value)
  }
  return result
}

func checkOutput(_ bytes: [UInt8]) throws(Violation) {
  let text = String(decoding: bytes, as: UTF8.self)
  guard let path = OutputPath(text) else {
    try require(OutputPath.defect(of: text) != nil, "refused without a reason")
    return
  }
  try require(OutputPath.defect(of: text) == nil, "accepted with a defect")
  try require(same(path.text, text), "an output is changed")
  try require(path.parents.count < 32, "an output below \(path.parents.count) directories")
  for component in path.parents + [path.name] {
    try require((1...255).contains(component.utf8.count), "a name of \(component.utf8.count) bytes")
    try require(component != "." && component != "..", "an output that leaves its root")
    try require(!component.utf8.contains { $0 < 0x20 || $0 == 0x2F || $0 == 0x7F }, "a name with a slash or controls")
  }
}

func checkFields(_ bytes: [UInt8]) throws(Violation) {
  let text = String(decoding: bytes, as: UTF8.self)
  // Any value comes back through a journal line.
  let line = Fields("word").with("key", text).with("last", "x")
  try require(!hasControls(line.text), "a value that ends its line, or steers a terminal")
  let read = Fields(parsing: line.text)
  try require(
    same(read?["key"], text) && same(read?["last"], "x") && read?.words == ["word"], "a value is read back as another")

  guard let fields = Fields(parsing: text), let again = Fields(parsing: fields.text) else {
    try require(Fields(parsing: text) == nil, "what was read cannot be written")
    return
  }
  try require(again.words.elementsEqual(fields.words, by: same), "words are read back as others")
  try require(
    again.named.elementsEqual(fields.named) { same($0.key, $1.key) && same($0.value, $1.value) },
    "fields are read back as others")
}
