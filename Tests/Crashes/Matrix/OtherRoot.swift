import Glibc
import TestSupport

/// An output root on another file system than the tests' temporary directory; removed with its last reference.
final class OtherRoot: Sendable {
  let path: String

  /// Whether this machine has one at hand.
  static var isAvailable: Bool {
    guard let memory = fileStatus("/dev/shm"), let directory = try? TemporaryDirectory(),
      let own = fileStatus(directory.path)
    else { return false }
    return memory.st_dev != own.st_dev && access("/dev/shm", W_OK) == 0
  }

  init() throws {
    var template = Array("/dev/shm/spoolrun-test.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TestSupportError("mkdtemp /dev/shm") }
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit {
    for file in allNames(in: path) { unlink("\(path)/\(file)") }
    rmdir(path)
  }
}

/// The names in a directory with those that begin with a dot.
func allNames(in directory: String) -> [String] {
  guard let stream = opendir(directory) else { return [] }
  defer { closedir(stream) }
  var names: [String] = []
  while let entry = readdir(stream) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if name != ".", name != ".." { names.append(name) }
  }
  return names.sorted()
}
