internal import Spool
internal import Transfer

/// The value of Content-Disposition: whatever a server proposes, what comes out is a file name that harms nobody.
func checkDisposition(_ bytes: [UInt8]) throws(Violation) {
  let text = String(decoding: bytes, as: UTF8.self)
  if let proposed = ContentDisposition(text)?.filename { try checkCleaned(proposed) }
  try checkCleaned(text)
  // Any name comes back as it was proposed, in both forms.
  let quoted = text.utf8.reduce(into: [UInt8]()) { result, byte in
    if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { result.append(UInt8(ascii: "\\")) }
    result.append(byte)
  }
  let plain = ContentDisposition("attachment; filename=\"\(String(decoding: quoted, as: UTF8.self))\"")
  try require(same(plain?.filename, text), "a quoted name is read as another")
  let encoded = text.utf8.map { "%" + hexadecimal(UInt64($0), digits: 2) }.joined()
  let extended = ContentDisposition("attachment; filename=x; filename*=UTF-8''\(encoded)")
  try require(same(extended?.filename, text), "an encoded name is read as another")
}

private func checkCleaned(_ text: String) throws(Violation) {
  guard let name = PayloadName.cleaned(text) else { return }
  guard let path = OutputPath(name) else {
    throw Violation(description: "a cleaned name is no output: \(OutputPath.defect(of: name) ?? "")")
  }
  try require(path.parents.isEmpty, "a cleaned name is a path")
  try require(!name.unicodeScalars.contains(where: isUnsafeForDisplay), "a cleaned name steers a terminal")
  try require(
    name.utf8.first != UInt8(ascii: ".") && name.utf8.first != UInt8(ascii: "-"), "a hidden name, or an option")
  try require(same(PayloadName.cleaned(name), name), "a clean name is changed")
}
