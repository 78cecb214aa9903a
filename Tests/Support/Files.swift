package import Glibc
import Synchronization

/// A path that no machine has, because nobody can make anything in proc(5).
package let nowhere = "/proc/nowhere"

/// The whole of a file; throws if it cannot be read.
package func readFile(_ path: String) throws(TestSupportError) -> [UInt8] {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
  guard descriptor >= 0 else { throw TestSupportError("open", path, errno: errno) }
  defer { close(descriptor) }
  var status = stat()
  guard fstat(descriptor, &status) == 0 else { throw TestSupportError("fstat", path, errno: errno) }
  var bytes: [UInt8] = []
  // One more than a small file has, so that the second call finds its end.
  var buffer = [UInt8](repeating: 0, count: min(max(Int(status.st_size), 4095) + 1, 256 * 1024))
  while true {
    let count = restarting { read(descriptor, &buffer, buffer.count) }
    guard count >= 0 else { throw TestSupportError("read", path, errno: errno) }
    if count == 0 { return bytes }
    bytes += buffer.prefix(count)
  }
}

/// The same as text.
package func readText(_ path: String) throws(TestSupportError) -> String {
  String(decoding: try readFile(path), as: UTF8.self)
}

/// As a worker of this machine calls it.
package func hostName() throws(TestSupportError) -> String {
  try readText("/proc/sys/kernel/hostname").filter { $0 != "\n" }
}

/// Creates or replaces the contents of a file.
package func writeFile(_ path: String, _ bytes: some Collection<UInt8>) throws(TestSupportError) {
  try descriptorCreation.withLock { _ throws(TestSupportError) in
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw TestSupportError("open", path, errno: errno) }
    defer { close(descriptor) }
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { buffer in restarting { write(descriptor, buffer.baseAddress, buffer.count) } }
      guard count > 0 else { throw TestSupportError("write", path, errno: errno) }
      rest = rest.dropFirst(count)
    }
  }
}

package func writeFile(_ path: String, _ text: String) throws(TestSupportError) {
  try writeFile(path, Array(text.utf8))
}

/// What stat(2) tells of a file, without following a link; nil if it isn't there.
package func fileStatus(_ path: String) -> stat? {
  var status = stat()
  return lstat(path, &status) == 0 ? status : nil
}

/// How many bytes of a file the page cache has, in whole pages (mincore(2)).
package func cachedBytes(of path: String) throws(TestSupportError) -> Int {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw TestSupportError("open", path, errno: errno) }
  defer { close(descriptor) }
  var status = stat()
  guard fstat(descriptor, &status) == 0 else { throw TestSupportError("fstat", path, errno: errno) }
  let length = Int(status.st_size)
  if length == 0 { return 0 }
  guard let memory = mmap(nil, length, PROT_READ, MAP_SHARED, descriptor, 0), memory != MAP_FAILED else {
    throw TestSupportError("mmap", path, errno: errno)
  }
  defer { munmap(memory, length) }
  let page = Int(getpagesize())
  var pages = [UInt8](repeating: 0, count: (length + page - 1) / page)
  guard mincore(memory, length, &pages) == 0 else { throw TestSupportError("mincore", path, errno: errno) }
  return pages.count { $0 & 1 == 1 } * page
}

/// The names in a directory, sorted; empty if there is no such directory.
/// - Parameter isHiddenToo: with those that begin with a dot, but `.` and `..`.
package func names(in directory: String, isHiddenToo: Bool = false) -> [String] {
  guard let stream = opendir(directory) else { return [] }
  defer { closedir(stream) }
  var names: [String] = []
  while let entry = readdir(stream) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if isHiddenToo ? name != "." && name != ".." : !name.hasPrefix(".") { names.append(name) }
  }
  return names.sorted()
}

/// All regular files below a directory, as sorted relative paths.
package func filesBelow(_ directory: String) -> [String] {
  names(in: directory).flatMap { name -> [String] in
    let path = "\(directory)/\(name)"
    guard let status = fileStatus(path), status.st_mode & S_IFMT == S_IFDIR else { return [name] }
    return filesBelow(path).map { "\(name)/\($0)" }
  }
}

/// Sets access and modification time to `seconds` after (before, if negative) now.
package func setModificationTime(_ path: String, secondsFromNow seconds: Int) throws(TestSupportError) {
  try setModificationTime(path, to: Glibc.time(nil) + seconds)
}

/// - Parameter seconds: since the epoch.
package func setModificationTime(_ path: String, to seconds: Int) throws(TestSupportError) {
  let time = timeval(tv_sec: seconds, tv_usec: 0)
  guard utimes(path, [time, time]) == 0 else { throw TestSupportError("utimes", path, errno: errno) }
}

/// A directory that goes with its last reference or with the process, with all that is in it.
package final class TemporaryDirectory: Sendable {
  /// Those that a static variable still has at the end of the process.
  private static let living = Mutex<Set<String>>([])
  private static let atEnd: Void = {
    atexit {
      for path in TemporaryDirectory.living.withLock({ $0 }) { TemporaryDirectory.remove(Array(path.utf8CString)) }
    }
  }()

  package let path: String

  /// A file system that is another one than that of temporary files, where ``Need/otherFileSystem`` is met.
  package static let otherFileSystem = "/dev/shm"

  /// - Parameter base: where to make it; nil for where temporary files go.
  package init(in base: String? = nil) throws(TestSupportError) {
    let base = base ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/spoolrun-test.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TestSupportError("mkdtemp", base, errno: errno) }
    let path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    self.path = path
    _ = Self.atEnd
    Self.living.withLock { _ = $0.insert(path) }
  }

  deinit {
    Self.remove(Array(path.utf8CString))
    let path = path
    Self.living.withLock { _ = $0.remove(path) }
  }

  /// Takes paths as bytes: tests make names that are no UTF-8.
  private static func remove(_ path: [CChar]) {
    if unlink(path) == 0 || errno != EISDIR { return }
    guard let stream = opendir(path) else { return }
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name != Array(".".utf8), name != Array("..".utf8) {
        remove(path.dropLast() + [CChar(bitPattern: UInt8(ascii: "/"))] + name.map { CChar(bitPattern: $0) } + [0])
      }
    }
    closedir(stream)
    rmdir(path)
  }
}
