/*! preact, @preact/signals, @preact/signals-core:

The MIT License (MIT)

Copyright (c) 2015-present Jason Miller

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.

The MIT License (MIT)

Copyright (c) 2022-present Preact Team

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
*/
function b(n,r){let s=I(n,r,1,0),c=I(n,r,0,1),e=E(n,s,c),o=new Float64Array(n);for(let h of e)h.forEach((d,y)=>o[d]=y);for(let h=0;h<4;h+=1){let d=h%2===0,y=d?s:c;for(let A of d?e:[...e].reverse()){for(let a of A){let i=y.starts[a],w=y.starts[a+1],p=0;for(let g=i;g<w;g+=1)p+=o[y.nodes[g]];w>i&&(o[a]=p/(w-i))}A.sort((a,i)=>o[a]-o[i]||a-i),A.forEach((a,i)=>o[a]=i)}}let m=Math.max(12,Math.ceil(Math.sqrt(n)*1.5)),t=new Int32Array(n),l=new Int32Array(n),u=0,f=0;for(let h of e){let d=Math.ceil(h.length/m),y=Math.ceil(h.length/d);h.forEach((A,a)=>{t[A]=u+Math.floor(a/y),l[A]=a%y}),u+=d,f=Math.max(f,y)}return{columns:t,rows:l,width:u,height:f}}function I(n,r,s,c){let e=new Int32Array(n+1);for(let t=0;t<r.length;t+=2)e[r[t+s]+1]+=1;for(let t=0;t<n;t+=1)e[t+1]+=e[t];let o=e.slice(),m=new Int32Array(r.length/2);for(let t=0;t<r.length;t+=2){let l=r[t+s];m[o[l]]=r[t+c],o[l]+=1}return{starts:e,nodes:m}}function E(n,r,s){let c=new Int32Array(n),e=new Int32Array(n),o=[];for(let t=0;t<n;t+=1)e[t]=r.starts[t+1]-r.starts[t],e[t]===0&&o.push(t);for(let t=0;t<o.length;t+=1){let l=o[t];for(let u=s.starts[l];u<s.starts[l+1];u+=1){let f=s.nodes[u];c[f]=Math.max(c[f],c[l]+1),e[f]-=1,e[f]===0&&o.push(f)}}let m=[];for(let t=0;t<n;t+=1)(m[c[t]]??=[]).push(t);return Array.from(m,t=>t??[]).filter(t=>t.length>0)}var M=globalThis;M.onmessage=({data:{id:n,count:r,edges:s}})=>M.postMessage({id:n,layout:b(r,s)});
